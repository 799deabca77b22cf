"""Who did what in English: the subject stands first, its verb beside it."""

import re

from policies.judge.grammars.grammar import Grammar, whole_word
from policies.judge.terms import terms

_LEAD = (
    r"(?:(?:is|was|are|were|been|being|also|very|really|deeply|always|both|then|later|recently"
    r"|that|he|she|they|to|feels?|felt|have|has|had|would|could|'d|'s|'ve|'re|\w+ly),? )*"
)
_ADVICE = (
    r"^\W*(?:(?:please|just|then|and|first|so|maybe|or|but|now|also|next|no|yes|ok|okay|well|oh"
    r"|finally|better),? )*(?:do not |don't |never |let's |let us )?"
    r"(?:try|take|use|ask|make|add|run|check|call|go|get|put|keep|send|give|tell|write|read|start"
    r"|stop|remember|consider|bring|buy|borrow|set|open|close|move|remove|install|replace|avoid"
    r"|wait|find|leave|pick|choose|turn|show|visit|enjoy|eat|drink|drop|cut|mix|stir|wear|book"
    r"|rent|learn|watch|listen|hold|follow|change|update|save|stay|sleep|rest|simmer|meet|share"
    r"|build|create|apply|talk|wash|clean|cook|bake|heat|pour|lower|raise|split|swap|switch|delete"
    r"|print|test|return|reset|press|click)\b"
    r"|\bi(?:'d| would) (?!love|like|rather)"
)
"""What one tells another to do, the other may rightly be told to do."""
_MANNERS = frozenset(
    stem[:5]
    for stem in (
        "excited expresses feels feeling happy glad proud grateful great amazing awesome shares"
        " photo picture shows mentions loves looks enjoys experience important believes support"
        " inspired talks passion love people things time highlights discuss working work forward"
        " always encourages praised compliments sharing showed shared looking loved feel felt"
        " appreciate family recent nobody anyone difference special moment"
    ).split()
)
"""What small models say of anybody."""
_TELLING = (
    r"(?:mention|shar|said|says|told|tells|explain|express|ask|prais|compli|encourag|has\b|had\b"
    r"|is\b|was\b|plan|thank|show|talk|describ|reveal|want|hope|believ|feel|felt|love|enjoy|add"
    r"|offer|agree|suggest)"
)


def _matters(text: str) -> set[str]:
    return terms(text) - _MANNERS


ENGLISH = Grammar(
    lead=r"\W*(?:(?:(?!{name})[^,.;]){{1,60}}, |\w+ly |then |also )?",
    subject=(
        r"(?:(?P<they>they)\b|(?P<first>{name})(?:'s)?\b(?:,? (?:and|&) (?P<second>{name})\b)?)"
    ),
    joint=(
        r"(?:,? (?:while|whereas|but)|, and) (?=(?:{name})\b)|; "
        r"|,? (?:and|but|while|whereas|so) (?=(?:he|she)\b)"
    ),
    further=re.compile(rf",? and (?=(?:also |then |later |\w+ly )?{_TELLING}\w*)"),
    told_them=r"^(?:told|tells|informed|informs) (?:\w+ )?(?:that|about|of)\b",
    answers=re.compile(
        rf"^{_LEAD}(?:impress|admir|prais|compl[ei]men|congratul|encourag|support|proud|thank"
        r"|appreciat|ask|inquir|wonder|agree|acknowledg|offer|reassur|comfort|sympath|hear|see"
        r"|look|interest|happy|glad|respon|replie|underst|remind|wish|hope|suggest|advis|belie"
        r"|excit|relat|empath|note|recogni|learn|curious|reflect|find|found|enthus|amaz|think"
        r"|thought|check|react|comment|value|inspired by|affirm|assur|commend|consider|applaud"
        r"|refus|declin|reject|den(?:y|ie)|accept"
        r"|shock|horrif|laugh|jok|teas|call|could ?n[o']t believe|listen|sigh|smil|envi|jealous"
        r"|worr|warn|urg|insist|persuad|convinc|argu|doubt|critici|blam|apologi|pleas|delight"
        r"|reliev|moved|touched|fascinat|intrigu|eager|keen|upset|sad\b|sorry|kn[eo]w|confirm"
        r"|point\w* out|promis|welcom|likes? the idea|(?:lov|lik)\w* to (?:know|hear|see)"
        r"|want\w* to (?:know|hear|see|learn)"
        r"|express\w* (?:\w+ )?(?:confiden|admir|inter|concern|surpris|enthus|sympath|appreciat))"
        r"|\b(?:is|was|are|were|has|had|have|needs?|going) to\b|\b(?:will|must|should|ought|may)\b"
    ),
    together=re.compile(
        rf"^{_LEAD}(?:discuss|talk|chat|convers|catch|caught|spoke|speak|shar|reconnect|each"
        r"|me[et]t?\b|plan|bond|exchang|reflect|express|agree|at |on |in |told|touch|enjoy|lov"
        r"|appreciat|find|found|support|encourag|value|reminisc|look|consider|bring|brainstorm"
        r"|explor|get|convey|emphas|highlight|acknowledg|connect)"
        r"|\b(?:is|was|are|were|has|had|have|needs?) to\b|\b(?:must|should|ought|may)\b"
    ),
    theirs=re.compile(r"\btheir\b(?! (?:own|respective|recent|lives)\b)"),
    addressed=re.compile(rf"\byou\b|\byour|\?|{_ADVICE}"),
    named=whole_word,
    matters=_matters,
)
