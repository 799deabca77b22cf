"""Words of telling: what a summary may say in its own words, whatever it tells of.

Reporting (praises, emphasizes, mentions), feeling (grateful, excited), appraisal (important,
meaningful) and the commonest verbs name no event or thing: their absence from a source proves
nothing, their presence grounds nothing. English alone. Chosen from general vocabulary, and held
against LoCoMo's hand-annotated session summaries: of the words there that their sessions lack,
nine tenths are of this kind.
"""

from policies.judge.roots import root

TELLING = frozenset(
    root(word)
    for word in (
        "ability able accept accomplish according achieve acknowledge acquaintance across"
        " activity actual additional address admire admit adoption advice advocate affection"
        " affirm afterwards agree allow allude almost alongside already amazing amid amidst amount"
        " answer anticipate anyone apologize apparent appear applaud appreciate approach area"
        " argue arrange artwork aside aspect aspire assert assist assure attempt attend attitude"
        " aware balance based beautiful became become began begin behind believe below beneath"
        " benefit beside better beyond boast bond bought brief bring brought call calm cannot"
        " capture catch cause celebrate certain challenge chance change character chat check"
        " cherish chime choice chose cite claim clear close comfort commend comment commit common"
        " community compassion compliment concern conclude condolence confess confident"
        " congratulate connect consider content continue contribute convey cooperate couple"
        " courage create credit culminate curious current daily deal debate decide decision"
        " declare decline dedicate deep delight delve demonstrate deny depend describe desire"
        " despite detail determination develop dialogue difference difficult direction disagree"
        " disappoint disclose discuss dislike display dream drew eager earlier ease effect effort"
        " elaborate emotion empathy emphasize empower enable encourage endeavor energy engage"
        " enjoy enrich ensure enthusiasm environment especially essential event everyone exactly"
        " exchange excite exist experience explain explore express extend extra face fact fairly"
        " family farewell fascinate favorite feedback feel fell felt find first focus follow fond"
        " forget former forth fortunate forward found fresh friday friend frustrate fulfill"
        " further future general generous genuine gets give glad goal good goodbye grateful"
        " gratitude great greet grew group grow growth guide half happen happy hard hardship"
        " harmony hear heard held help hesitate highlight hint hobby hold hope humor idea identity"
        " image imagine immerse impact important impress improve include increase indicate"
        " individual influence inform initial inquire insight insist inspire instance instead"
        " instruct intend interest intrigue introduce invite involve issue item joke journey"
        " joyful keep kept kind knew know known lack lament last later lead learn least leave left"
        " length life lifelong light likely list listen little live long look lost love main"
        " maintain making manage matter maybe mean meant meanwhile meet member memorable memory"
        " mention message might mind moment monday mood mostly motivate move muse mutual name"
        " nature nearly need nervous newfound nobody nostalgia note notice number observe occasion"
        " offer often oneself ongoing open opinion opportunity optimistic organize otherwise"
        " outcome outline overall overwhelm paid pair part participate partner passion passionate"
        " past patience peace people perform perseverance personal perspective persuade phase"
        " photo picture place plan plead pleasant pleased pledge point ponder positive possible"
        " potential power practice praise predict prefer prepare presence previous pride prior"
        " probably proceed process progress project promise propose protest proud provide purpose"
        " pursue question quick quite quote raise reach react read reaffirm real realize reason"
        " reassure recall receive recent recognize recommend reconnect recount refer reflect"
        " refreshing refuse regard regularly reinforce reiterate reject rejuvenate relate relax"
        " relay reliable relief rely remain remark remember remind reply report represent request"
        " resilience resolve respect respond rest result retort return reveal reward right role"
        " sadness satisfaction saturday scene seeing seek seem seen select self send sense sent"
        " serene serious session several share shock show showcase shown shrug side sign"
        " significant similar simple simply sincere situation small social solace sold somebody"
        " soon sort source spark speak special specific speculate spend spent spirit stand start"
        " state stay stem step stood story strength stress strong struggle subject succeed success"
        " suggest summarize sunday support sure surprise swear symbol sympathize taken taking"
        " talent talk task taught team tease tell tense term testament thank thing think threaten"
        " thrill thursday time today tomorrow took topic total touch transform treasure tricky"
        " tried trip trouble true trust trying tuesday turn type uncertain understand unexpected"
        " unfortunate unique unity upcoming update uplifting upset urge using usually value"
        " various view visit warm warn wednesday well went whisper whole willing wish wonder word"
        " work world worry worth written wrote year yesterday young"
    ).split()
)
"""The roots of the words of telling."""
