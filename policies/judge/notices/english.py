"""Notices in English: who records, or what is recorded, with a negated or passive verb."""

import re

from policies.judge.notices.notice import Notice, bare, blank, forms, free, then

_MACHINE = r"\b(?:the|this|an?) (?:\w+ )?(?:assistant|model|system|ai|bot|narrator)\b"
_RECORDER = (
    r"\b(?P<recorder>recorder|chronicler|summari[sz]er|(?:large )?language model"
    r"|ai model)\b"
)
_NOW = (
    r"(?:(?:is|remains) (?:un(?:able|willing)|not (?:\w+ly )?(?:able|permitted|allowed|willing"
    r"|authori[sz]ed|designed|going|in a position))|can ?not|can'?t|will not|won'?t|declines"
    r"|refuses|does ?n[o']t|does not|abstains|refrains|must (?:decline|refuse)|has (?:chosen"
    r"|decided|opted) not|prefers not|opts not)"
)
_DENIES = (
    rf"(?:{_NOW}|was (?:un(?:able|willing)|not (?:able|permitted|allowed|willing))|could not"
    r"|couldn'?t|would not|wouldn'?t|did not|didn'?t|declin\w+|refus\w+|refrain\w*|abstain\w*"
    r"|(?:chose|decided|opted|preferred) not)"
)
_GAP = (
    r"(?:(?!\b(?:and|but|so|until|without|then|before|after|because|unless|who|which)\b)"
    r"[^,;:]){0,60}?"
)
_TASK = (
    r"\b(?P<telling>summar(?!y (?:judgment|execution|dismissal|offence))\w+|chronicl\w+|recaps?"
    r"|synops\w+|retell\w*"
    r"|chapters?\b(?! of\b))"
)
_TELLING = (
    r"\b(?P<telling>summar\w+|chronicl\w+|recaps?\b|synops\w+|recount\w*|retell\w*|narrat(?:es?"
    r"|ed|ing)\b"
    r"|record(?:ing|ed|s)?\b|accounts? of\b|chapters?\b|describ\w+|retold|detailed"
    r"|document(?:ed|ing)"
    r"|reproduced|elaborated)"
)
_PASSAGE = (
    r"\b(?P<passage>excerpts?|transcripts?|passages? (?:about|concerning|regarding|on|in question"
    r"|contain\w*|touch\w*))\b"
)
_RULES = (
    r"\b(?P<rules>polic(?:y|ies)|guidelines?|moderation|content (?:restriction|filter|standard)s?"
    r"|safety (?:reasons?|concerns?|guidelines?|standards?|measures?)|for safety|sensitiv\w+"
    r"|inappropriate|appropriate|suitable|explicit|privacy|terms of (?:service|use))\b"
)
_NOT_DONE = (
    r"(?:withheld|omitted|left out|redacted|removed|excluded|censored|declined|refused|denied"
    r"|rejected|unavailable|impossible|inappropriate"
    r"|not (?:\w+ )?(?:available|possible|permitted|appropriate|suitable|allowed|advisable"
    r"|provided|included|described|recorded|written))"
)
_VOID = (
    rf"(?:\b(?:is|are|was|were|be|been|being) (?:\w+ly )?{_NOT_DONE}"
    r"|\b(?:can ?not|can'?t|could not|couldn'?t|may not|must not|will not|would not|should not)"
    r" be \w+|\bfalls? outside|\b(?:violat|breach|contraven)\w+|\bgoes against\b"
    r"|\bdoes not (?:meet|comply))"
)
_MATERIAL = (
    r"\b(?:content|material|text|conversation|exchange|dialogue|talk|discussion|details?"
    r"|information|narrative|scene|rest)s?\b"
)
_PART = (
    r"(?:\b(?:rest|remainder)\b|\bremaining (?:content|material|details?|parts?|text|passages?"
    r"|portions?|exchange|conversation|scene)|\b(?:some|certain|several|many|other|further|any"
    r"|explicit|sensitive|graphic|intimate|the) (?:\w+ )?(?:details?|parts?|portions?|passages?"
    r"|sections?|elements?|content|material)\b(?! of (?!the (?:passage|exchange"
    r"|conversation|text|scene|story|talk|chat)))|\b(?:parts?|portions?|details) of (?:the|this)"
    r" (?:passage|exchange|conversation|text|scene|content|story)|\banything (?:beyond|further"
    r"|else)|\beverything (?:else|beyond))"
)
_LEFT = (
    r"\b(?P<left>left out|leave out|omit\w*|withh[eo]ld\w*|redact\w*|remov\w+|exclud\w+|skipp?\w*"
    r"|censor\w*|not (?:\w+ )?(?:described|recorded|included|summari[sz]ed|reproduced|detailed"
    r"|recounted))\b"
)
_LEFT_OUT = (
    r"\b(?P<left>left out|omitted|withheld|redacted|censored|excluded"
    r"|not (?:\w+ )?(?:described|recorded|included|summari[sz]ed|reproduced|detailed|recounted))\b"
)
_REASON = (
    r"(?:\W*$|,? (?:here|because|due|owing|to keep|in (?:line|accordance|order|keeping|compliance)"
    r"|per\b|since|as\b|out of|(?:from|in) (?:this|the) (?:record|summary|chapter|account)"
    r"|for (?:safety|privacy|policy)))"
)

_RECORD = (
    r"\b(?:(?P<telling>summar(?:y|ies|i[sz]\w+)|chronicles?|recaps?|synops\w+|retelling)"
    r"|(?:this|the present) (?P<passage>record|account|text|chapter|report))\b"
)
_CLOSED = (
    r"\b(?:withheld|omit\w*|left (?:out|blank|empty)|redact\w*|filtered|flagged|blocked|cens\w+"
    r"|sanit\w+|unsuit\w+|inappropriate|unavailable|undescribed|avoided|passed over|beyond"
    r"|not (?:be )?(?:suit\w+|available|possible|provided|given|included|cover\w*)|cannot be"
    r"|do(?:es)? not (?:cover|include|describe|contain|go into|provide)|modified|softened)\b"
)
_SHUT = (
    r"\b(?:redacted|filtered|omitted|removed|censored|blocked|withheld|deleted|flagged|unavailable"
    r"|skipped|not (?:shown|available|included|recorded))\b"
)
_UNFIT = (
    r"(?P<rules>not (?:be )?(?:suitable|appropriate|fit)|unsuitable|inappropriate|too (?:explicit"
    r"|sensitive|graphic)|explicit|improper)"
)
_TOLD = r"(?:descri\w+|record\w*|recount\w*|summar\w+|chronicl\w+|narrat\w+|retell\w*|retold)"

ENGLISH = Notice(
    script=re.compile("[a-z]"),
    forms=forms(
        r"\bas an? (?:\w+ )?(?:ai|artificial intelligence|language model)\b"
        r"(?: (?:language model|assistant|model|system))?,? (?:i|my|we)\b",
        r"\bi(?:'m| am) (?:only |just )?an? (?P<recorder>ai|artificial intelligence"
        r"|(?:large )?language model)\b",
        rf"{_RECORDER}.{{0,40}}?(?:{_DENIES}|apologi[sz]\w+)",
        rf"{_RECORD}.{{0,80}}?{_CLOSED}",
        rf"{_CLOSED}.{{0,80}}?{_RECORD}",
        rf"{_UNFIT}.{{0,40}}?\b{_TOLD}",
        rf"{_MATERIAL}.{{0,60}}?{_UNFIT}.{{0,40}}?\bnot (?:be )?{_TOLD}",
        rf"^(?=.*{_MATERIAL})(?=.*(?:{_CLOSED}|\bnot\b)).*\b(?P<rules>(?:safety|ethical|legal"
        rf"|policy"
        r"|moral) reasons?|content polic\w+|guidelines?|propriety|decency|moderation)\b",
        rf"^[\[【][^\]】]{{0,60}}?(?P<left>{_SHUT})",
        rf"^\W*(?:further |remaining |the |some |more )?(?:details?|content|material|text|names?)"
        rf" (?:(?:was|were|is|are|has been|have been) )?(?P<left>{_SHUT})",
        r"\b(?:no|without) (?:further|more|other|additional) (?:description|account|record)s?\b"
        r".{0,30}?\b(?P<left>given|provided|offered|made)\b",
        r"\b(?:no|without) (?:further|more|other|additional) (?:details?|information|content)\b"
        r".{0,30}?\b(?P<left>recorded|included|described)\b",
        r"\b(?:nothing|none|no part|little) (?:about|of|on|from) .{0,120}?\b(?:can|could|may"
        r"|will) be"
        r" (?P<telling>descri\w+|recorded|recount\w*|summari\w+|chronicl\w+|narrated|retold)",
        r"\bit (?:was|has been|is) (?:decided|chosen|deemed|best|better)\b.{0,30}?\bnot to"
        r" (?P<telling>descri\w+|record|recount|summar\w+|chronicl\w+|narrate|retell)",
        rf"{_MACHINE}.{{0,20}}?{_NOW}{_GAP}{_TELLING}",
        rf"\b(?:no|neither) (?:\w+ )?{_TASK}.{{0,90}}?\b(?:be|is|was|were|available|possible)\b",
        rf"{_TASK}.{{0,120}}?{_VOID}",
        rf"{_PASSAGE}.{{0,160}}?(?:{_VOID}|{_RULES})",
        r"\brequest (?:to|for)\b.{0,20}?\b(?P<telling>summar\w+|chronicl\w+|record|recount|retell)"
        rf".{{0,160}}?\b{_NOT_DONE}",
        r"(?:^\W*unable|\b(?:not (?:been )?possible|impossible|inappropriate|not (?:appropriate"
        r"|permitted"
        rf"|allowed)))\b{_GAP}{_TASK}",
        then(rf"{_MATERIAL}.{{0,120}}?{_VOID}", _RULES),
        then(r"\b(?:ends?|stops?|breaks? off) here\b", _RULES),
        then(_RULES, rf"\b(?:can ?not|could not|may not|must not|not) be {_TELLING}"),
        r"^\W*(?:it|this|that|they|these|much of (?:it|this)|(?:the|this) (?:conversation|exchange"
        r"|content|material|talk|rest))\b.{0,30}?(?:can ?not|can'?t|could not|may not|must not"
        r"|will not|is not|are not|was not) (?:be )?(?:\w+ly )?\b"
        r"(?P<telling>describ\w+\b(?! as\b)|summari[sz]\w+|recorded|recount\w+|chronicl\w+|retold"
        r"|reproduced|narrated|elaborated)",
        then(rf"{_PART}.{{0,60}}?{free(_LEFT)}", _RULES),
        rf"{_PART}.{{0,60}}?{_LEFT_OUT}{_REASON}",
        r"\b(?:i|we)(?:'ve| have| had)? (?:\w+ly )?(?P<left>left out|omitted|skipped|excluded"
        r"|withheld|redacted|removed)\b",
        r"\b(?:i|we)(?:'ll| will| must| have to| need to| should| am going to|'m going to)?"
        r" (?P<stop>stop (?:here|there)|leave it (?:there|here|at that)|end here|pause here"
        r"|cut (?:it|this) short|go no further)\b",
    ),
    reported=forms(
        rf"{_MACHINE}.{{0,20}}?{_DENIES}{_GAP}(?!record){_TELLING}",
        rf"{_MACHINE}.{{0,20}}?\b(?:declin\w+|refus\w+) to (?P<telling>record)\b",
        then(rf"{_MACHINE}.{{0,20}}?{_DENIES}", _RULES),
        rf"{_MACHINE}.{{0,20}}?\b(?:bound|limited|restricted|instructed"
        rf"|prevented)\b.{{0,30}}?{_RULES}",
        rf"{_MACHINE}.{{0,20}}?(?:{_DENIES}|\b(?:instructed|asked|told|designed|trained) not to)\b"
        rf"{_GAP}\b(?P<telling>produc\w+|generat\w+|compos\w+|compl(?:y|ies|ied)"
        r"|fulfil\w*|text|content)",
    ),
    asked=re.compile(
        r"summar|\bsum (?:\w+ )?up\b|tl;? ?dr|\brecap|\bshorten|condens|overview|outline|\bgist\b"
    ),
    rules=bare(_RULES),
    left=bare(_LEFT),
    everyday=re.compile(
        r"chapters?|record(?:s|ed|ings?)?|accounts?(?: of)?|text|report|content|descri\w+"
        r"|document\w*|detailed|elaborated|reproduced|narrat\w*|recount\w*|produc\w+|generat\w+|compos\w+"
        r"|excerpts?|transcripts?|passages?.*|omit\w*|left out|leave out|withh[eo]ld\w*"
        r"|redact\w*|remov\w+|exclud\w+|skipp?\w*|censor\w*|filtered|blocked|deleted|flagged"
        r"|unavailable|not .+|given|provided|offered|made|included"
    ),
    talk=re.compile(
        r"\b(?:talk|conversation|exchange|dialogue|passage|excerpt"
        r"|(?:this|the present) (?:record|chapter))\b"
    ),
    theme=re.compile(r"\b(?:what\b.{0,60}?\bsa(?:id|ys?)|talk\w*|about|concerning|regarding)\b"),
    assistant=re.compile(r"\b(?:assistant|ai|language model)\b"),
    own=blank(_RULES, _LEFT, _SHUT, _PART, _MATERIAL, _TELLING, r"\b(?:usage|safety)\b"),
    behind=3,
    owner=re.compile(
        r"(?<!assistant)(?<!model)(?<!\bai)(?<!platform)(?<!service)(?<!provider)(?<!recorder)'s \|"
        r"|\| for (?!an?\b|the\b|this\b|summar|record|inclusion|chronicl)\w"
    ),
)
