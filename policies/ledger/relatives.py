"""Clauses whose subject is somebody that the speaker tells of: `my sister lives in Kyoto`.

They tell something of the speaker too (a sister there is), so that they count for a fact that names
the same relative, and for no other.
"""

import re
from collections.abc import Iterator

_GROUPS = tuple(
    re.compile(words)
    for words in (
        r"\bsisters?\b|\bhermanas?\b|сестр|妹|姉|姐|누나|언니|여동생",
        r"\bbrothers?\b|\bhermanos?\b|\bбрат|兄|弟|哥|형(?=[은이의]|님)|오빠|남동생",
        r"\bmother|\bmom\b|\bmum\b|\bmadre\b|\bmama\b|\bмам|\bмат[ьие]|母|お母|妈|媽|엄마|어머니",
        r"\bfather|\bdad\b|\bpadre\b|\bpapa\b|\bпап[аыеу]|\bот[ец]|父|爸|아빠|아버지",
        r"\bparents?\b|\bpadres\b|родител|両親|父母|부모",
        r"\bwife\b|\bmujer\b|\besposa\b|\bжен[аыеу]\b|妻|奥さん|老婆|太太|아내|와이프",
        r"\bhusband\b|\bmarido\b|\besposo\b|\bмуж|夫|旦那|丈夫|老公|남편",
        r"\bsons?\b|\bhijos?\b|\bсын|息子|儿子|兒子|아들",
        r"\bdaughters?\b|\bhijas?\b|\bдоч|娘|女儿|女兒|딸",
        r"\bchild|\bkids?\b|\bдет[иея]|子供|子ども|孩子|아이",
        r"\b(?:boy|girl)friends?\b|\bpartner|\bnovi[oa]s?\b|\bpareja|парень|девушк|彼氏|彼女|男友|女友"
        r"|男朋友|女朋友|남자친구|여자친구|애인",
        r"\bfriends?\b|\bamig[oa]s?\b|\bдруг|подруг|друзь|友達|友人|朋友|친구",
        r"\bgrand(?:ma|mother)|\babuela|бабушк|祖母|おばあ|奶奶|外婆|할머니",
        r"\bgrand(?:pa|father)|\babuelo|дедушк|\bдед\b|祖父|おじい|爷爷|外公|할아버지",
        r"\baunts?\b|\buncles?\b|\bti[oa]s?\b|\bт[её]т|\bдяд|叔|伯|姨|舅|이모|고모|삼촌",
        r"\bcousins?\b|\bprim[oa]s?\b|кузин|двоюродн|従兄|従姉|いとこ|表哥|表姐|堂|사촌",
        r"\bneighbou?rs?\b|\bvecin[oa]s?\b|сосед|隣人|隣の人|邻居|鄰居|이웃",
        r"\bboss\b|\bmanager\b|\bjef[ea]\b|начальник|\bшеф|上司|老板|老闆|상사|사장",
        r"\bcolleagues?\b|\bcoworkers?\b|\bcompañer[oa]s?\b|\bcolegas?\b|коллег|同僚|同事|동료",
        r"\broommates?\b|\bflatmates?\b|сосед\w* по|ルームメイト|室友|룸메이트",
        r"\bteachers?\b|\bprofesor\w*|учител|先生|老师|老師|선생",
        r"\bdogs?\b|\bperr[oa]s?\b|собак|\bп[её]с\b|犬|狗|개(?=[가는])|강아지",
        r"\bcats?\b|\bgat[oa]s?\b|\bкот\b|кошк|猫|고양이",
    )
)
_ANY = "|".join(f"(?:{group.pattern})" for group in _GROUPS)
_LEAD = (
    r"^\W*(?:(?:well|so|oh|yes|no|also|then|and|but|because|that|que|porque|pero|y|и|а|но|что)\W+)*"
)
_SUBJECT = re.compile(
    rf"{_LEAD}(?:(?:my|our|mis?|nuestr[oa]s?|мо[йяеи]\w*|наш\w*)\s+(?:\S+\s+){{0,2}}?(?={_ANY})"
    rf"|(?:我们?的?|咱们?的?)?(?={_ANY})(?=[^\u3041-\u30ff]*$)(?=[\u4e00-\u9fff])"
    rf"|(?:私の|うちの|僕の|俺の|お)?(?=(?:{_ANY})\S{{0,6}}?[はがも])"
    rf"|(?:우리|제|내)?\s?(?=(?:{_ANY})[^.]{{0,12}}?[은는이가](?:\s|$)))"
)
_BORDER = re.compile(
    r"[,;:](?!\d)\s*|、|\s[—–-]\s|\s(?=(?:and|but|while|because|y|pero|porque|mientras|и|а|но|пока)\s)"
    r"|(?<=[고며만데])\s(?!싶|있|계)"
)
_SELF = re.compile(
    r"\b(?:i|i'm|i've|i'll|i'd|we|we're|we've)\b|\b(?:yo|nosotr[oa]s|vivo|tengo|soy|estoy)\b|\b(?:я|мы)\b"
    r"|(?:私|僕|俺|わたし)[はがも]|我(?![们的]?(?:" + _ANY + r"))|(?<![가-힣])(?:나|저|내|제)[는가]"
)
_SPEECH = re.compile(
    r"\b(?:said|says|say|told|tells|asked|asks|wrote|writes|repl\w+|shout\w+|whisper\w+|answer\w+"
    r"|text(?:ed|s)|e-?mail(?:ed|s)|messaged|posted|claim\w*|explain\w*)\b"
    r"|\b(?:dijo|dice|digo|dije|pregunt\w+|escrib\w+|respond\w+|contest\w+|cont[oa]"
    r"|mando|manda|envio|envia|coment\w+)\b"
    r"|\b(?:сказал\w*|говор\w+|написал\w*|спросил\w*|ответил\w*|кричал\w*|шеп\w+"
    r"|пиш[еу]т|прислал\w*|сообщил\w*|рассказал\w*)\b"
    r"|言[っいう]|話し|叫[んび]|聞い|と書"
    r"|[说說道问問喊]|告诉|告訴|回答"
    r"|말했|말하|물었|라고|다고|썼"
)


def split_clauses(folded: str) -> Iterator[tuple[int | None, str]]:
    """The clauses of a folded sentence, each with the relative that it tells of (by number), None
    for one of the speaker's own. What follows without a subject of its own goes on with it."""
    relative: int | None = None
    for clause in filter(None, map(str.strip, _BORDER.split(folded))):
        subject = _SUBJECT.match(clause)
        if subject is not None:
            relative = next(
                at for at, group in enumerate(_GROUPS) if group.match(clause, subject.end())
            )
        elif _SELF.search(clause):
            relative = None
        yield relative, clause


def names_relative(folded: str, relative: int) -> bool:
    """Whether a folded text names this relative."""
    return bool(_GROUPS[relative].search(folded))


def is_quoted_of_another(around: str) -> bool:
    """Whether what stands around a quotation, folded, says that somebody else than the speaker said
    it."""
    return bool(_SPEECH.search(around)) and not _SELF.search(around)
