"""Thinking that leaked into an output: stripped where it is closed, else the text is no prose."""

import re

_NAMES = r"(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|seed:think)"
_OPEN = re.compile(rf"<\|?{_NAMES}\|?>|◁think▷|\[think\]", re.IGNORECASE)
_CLOSE = re.compile(rf"</\|?{_NAMES}\|?>|◁/think▷|\[/think\]", re.IGNORECASE)
_FINAL = re.compile(r"<\|channel\|>\s*final\s*(?:<\|[^|]*\|>[^<]*)*?<\|message\|>")
_SHOWN = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'", re.DOTALL)
_MARKUP = re.compile(
    r"</?tool_?calls?\b|</?function(?:_?calls?)?\b\s*[=>]|</?invoke\b|<arg_key>|</?tool_response"
    r"|<\|[a-z_0-9]+\|>|<｜[^｜>\n]{1,40}｜>|\[/?tool_calls?\]|\[/?inst\]|<</?sys>>|</?s>"
    r"|</?(?:start|end)_of_turn>",
    re.IGNORECASE,
)
_TOOL_JSON = re.compile(
    r'^\s*\{\s*"(?:name|function|tool)"\s*:.*"(?:arguments|parameters|args)"', re.DOTALL
)
_ALOUD = re.compile(
    r"^\W*(?:okay|ok|alright|all right|hmm+|right|so|well|let me see|first)[,.: ]+(?:so"
    r" |now |then )*"
    r"(?:the user(?: here)? (?:wants|is asking|asks|has asked|asked|needs|"
    r"would like)|i (?:need|have|should|must|will|'ll|am)"
    r"|i'(?:ll|m|ve)|let'?s|let me|we need)\b"
    r"|^\W*(?:the user|they) (?:wants|is asking|asks|has asked|needs) (?:me|"
    r"for (?:a|the) (?:summary|chapter|recap))\b"
    r"|^\W*(?:let me|let's|i need to|i should|i'll|i will|i have to|we need to) (?:now "
    r"|first |carefully )?"
    r"(?:think|analy[sz]e|start|begin|summari[sz]e|write|read|look|go through|"
    r"break|identify|produce|create|draft)\b"
    r"|^\W*(?:好的|嗯|首先)?[,，。 ]*(?:用户(?:想|要|希望|需要|让)(?:我|"
    r"要我)|我(?:需要|应该|来|得)(?:先|要)?(?:总结|分析|看看|梳理|写|概括))"
    r"|^\W*(?:ユーザーは|ユーザーが)[^。\n]{0,20}(?:求めて|依頼して|望んで)い"
    r"|^\W*(?:まず|えっと)[、 ]*(?:会話|内容)を(?:読|確認|整理|分析)"
    r"|^\W*(?:хорошо|итак|ладно|так)[,. ]+(?:пользователь (?:просит|хочет)|"
    r"мне (?:нужно|надо)|нужно|надо)"
    r"|^\W*(?:bien|vale|bueno|veamos)[,. ]+(?:el usuario (?:quiere|pide)|tengo que|debo|necesito)"
    r"|^\W*(?:음|자|좋아|알겠)[^.\n]{0,6}[,. ]+(?:사용자가|먼저|이 대화를)[^.\n]{0,30}("
    r"?:요청|원하|정리해야|살펴)",
    re.IGNORECASE,
)


def strip_thinking(text: str) -> str:
    """Return the text behind the last closed think block, or before an opening one's end.

    A closing tag without an opening one ends a block that the template opened. A tag shown in
    back-ticks or quotation marks is a word of the conversation and stays. An open block is left
    in place: shows_thinking then sees it.
    """
    finals = list(_FINAL.finditer(text))
    if finals:
        return re.sub(r"<\|(?:end|return)\|>\s*$", "", text[finals[-1].end() :]).strip()
    shown = [match.span() for match in _SHOWN.finditer(text)]
    closes = [m for m in _CLOSE.finditer(text) if not _inside(m.start(), shown)]
    # Inside a think block quotation marks may be unbalanced, so an opening tag settles it.
    if not closes and _OPEN.match(text.lstrip()):
        closes = list(_CLOSE.finditer(text))
    return text[closes[-1].end() :].strip() if closes else text


def shows_thinking(text: str) -> bool:
    """Say whether a prose still holds tags of thinking, tool-call markup or thinking aloud."""
    hidden = _SHOWN.sub(" ", text)
    return bool(
        _OPEN.search(hidden)
        or _CLOSE.search(hidden)
        or _MARKUP.search(hidden)
        or _TOOL_JSON.match(text)
        or _ALOUD.match(text[:400])
    )


def _inside(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)
