"""What a policy may hide from a model off this machine: where it stands in a text (`finding`), what
is shown in its place (`placeholders`), and how it comes back (`restoring`).

Whatever is found is found by its own letters and what stands right beside them, so that a text is
masked alike wherever it is shown. Everything here takes time linear in the text.
"""
