"""The models behind the gateway: llama.cpp's server, the cloud through LiteLLM, a scripted one."""
