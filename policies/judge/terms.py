"""Terms: what a text is about, comparable across inflections."""

import re

from policies.judge.reading import HAN, HANGUL, KANA, words

DENSE = re.compile(f"[{HAN}{KANA}]+")
HANGUL_LETTER = re.compile(f"[{HANGUL}]")
_STEM_LETTERS = 5
_LEAST_LETTERS = 4
COMMON = frozenset(
    "about above after again against also although always another anything around because been"
    " before being between both came could does doing done down during each either else even ever"
    " every everything finally from given gave goes going gone have having here hers herself"
    " himself into itself just like made make many more most much must myself never next none"
    " nothing once only other others over perhaps rather said same shall should since some someone"
    " something still such than that their theirs them themselves then there these they this those"
    " though through together told toward towards under until upon very want wanted wants were"
    " what when where whether which while whom whose will with within without would your agreed"
    " asked asks answered decided discussed explained explains mentioned replied says shared spoke"
    " talked talking thought thinks tells conversation chapter summary user assistant"
    " para pero como cuando donde porque sobre entre hasta desde esta este esto estos estas aunque"
    " tambien mientras dijo pidio pregunto respondio explico conto quien cual cuyo tiene habia"
    " было была были этот этого этой эти того тоже также когда потом после перед чтобы если который"
    " которая которые которого сказал сказала сказали спросил спросила ответил ответила рассказал"
    " рассказала".split()
)
"""Words of four letters and more that every text has."""


def terms(text: str) -> set[str]:
    """Return the stems of the content words of a folded text.

    Five letters of an alphabet stand for a word, the first three syllables of Hangul in pairs
    (particles follow), and every pair of characters where words have no spaces.
    """
    found: set[str] = set()
    for word in words(text):
        if word.isascii():
            found.update(_stem(word))
            continue
        for run in DENSE.findall(word):
            found.update(run[at : at + 2] for at in range(len(run) - 1))
        bare = DENSE.sub("", word)
        if HANGUL_LETTER.search(bare):
            found.update(bare[at : at + 2] for at in range(min(len(bare) - 1, 2)))
        else:
            found.update(_stem(bare))
    return found


def _stem(word: str) -> tuple[str, ...]:
    bare = word.removesuffix("'s")
    if len(bare) < _LEAST_LETTERS or bare in COMMON:
        return ()
    return (bare[:_STEM_LETTERS],)
