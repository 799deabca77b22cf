"""Word lists of recall: what a query does not look for, and words that are forms of another.

Stop words are left out of queries only: an index holds every word, so that these lists may grow
without indexing anew. Small talk is what people say to keep a conversation going; a message that
says nothing else recalls nothing.
"""

_ENGLISH = """
a an the and or but nor of to in on at for from with by as if so than then too very just also ever
about into onto over under up down out off again is are was were be been being am do does did done
doing has have had having will would shall should can could may might must not no what when where
who whom whose which why how i you he she it we they me him her us them my your his its our their
mine yours hers ours theirs this that these those there here any some more most other such own same
both each few all s t im youre hes shes theyre weve ive youve dont doesnt didnt isnt arent wasnt
werent cant couldnt wont wouldnt shouldnt hasnt havent hadnt lets one ones something anything
someone anyone really actually
"""
_ENGLISH_TALK = """
ok okay thanks thank thankyou thx ty please sorry hello hi hey hiya bye goodbye yes yeah yep yup
no nope nah sure great good nice cool awesome amazing wow lol haha hahaha hehe oh ah um uh hmm well
right fine alright morning afternoon evening night day today welcome glad happy love lovely
wonderful perfect exactly absolutely definitely totally interesting sounds see know think guess
tell say said talk mean mention mentioned remember recall remind forget let go get got make want
like need much many lot lots thing things way time kind sort type bit little maybe perhaps later
soon now again back still always never care take keep going continue next please funny weather
weekend sense explain explaining explained tired bed sleep morrow tomorrow feel better worry worries
sweet kind idea agree agreed true try help question answer congratulations congrats
"""
_SPANISH = """
el la los las un una unos unas lo al del de a ante bajo con contra desde en entre hacia hasta para
por sin sobre tras y e o u ni que quien quienes cual cuales cuando donde como cuanto cuanta cuantos
cuantas si no mas muy ya tambien pero porque pues se me te le les nos os mi mis tu tus su sus
nuestro nuestra nuestros nuestras yo ella ellos ellas nosotros usted ustedes esto eso esta este
estos estas ese esa esos esas aquel aquella es son era eran fue fueron ser estar estoy estas estan
estaba estaban ha han he has hay haber habia hizo hace hacer algo alguien todo toda todos todas
"""
_SPANISH_TALK = """
hola gracias adios vale bien bueno buena buenos buenas dias tardes noches claro perfecto genial
jaja jajaja hoy luego entonces sigue oye mira dime dijo dije dijiste recuerdas recuerda acuerdas
cuentame quiero gusta favor cosa cosas vez veo ver pasa nada cansado cansada dormir tiempo mucho
mucha entendido intento parece enhorabuena perdona perdon manana estuve va voy
"""
_RUSSIAN = """
и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было
вот от меня еще нет о об из ему теперь когда даже ну вдруг ли если уже или ни быть был была были
него до вас нибудь опять уж вам ведь там потом себя ничего ей может они тут где есть надо ней для
мы тебя их чем сам чтоб чтобы без будто чего раз тоже себе под будет ж тогда кто этот того потому
этого какой какая какое какие совсем ним здесь этом один почти мой моя мое мои твой твоя твое твои
тем нее сейчас куда зачем сколько всех можно при наконец два другой после над больше тот через эти
нас про всего них много разве эту впрочем свою этой перед иногда чуть том нельзя такой им более
всегда между это эта почему откуда чей чья как-то наш ваш
"""
_RUSSIAN_TALK = """
привет здравствуй здравствуйте пока спасибо пожалуйста хорошо ладно ок окей отлично здорово класс
понятно ясно конечно ага угу ха хаха утро утром добрый доброе добрая вечер день ночь ночи сегодня
давай рад рада помнишь помните помню скажи сказал сказала говорил говорила расскажи напомни знаешь
думаю хочу круто супер дела ничего страшного страшно извини извините продолжай завтра люблю понял
поняла попробую устал устала спать поздравляю думаешь погода
"""
_KOREAN = """
그 이 저 그리고 그런데 하지만 그래서 나 너 내 네 제 우리 저희 당신 무엇 뭐 무슨 누구 누가 언제
뭐야 뭐지 뭐였지 뭐였어 누구지 누구야 누구였지 얼마였지 언제였지 어디였지 어디였어 어디야
어디 어디서 어떤 어떻게 왜 얼마나 얼마 것 거 수 때 좀 더 잘 다 또 안 못 있 없 하 했 되 됐
있어 있었어 없어 했어 했지 였지 이었지 였어 이었어 됐어 그거 이거 저거 여기 거기
"""
_KOREAN_TALK = """
안녕 안녕하세요 고마워 고마워요 감사합니다 네 예 응 그래 좋아 좋아요 알겠어 알겠어요 알겠습니다
대단하다 축하해 축하합니다 내일 봐 피곤 피곤해 날씨 괜찮아 괜찮아요 미안 미안해 사랑해 계속
계속해 말해 알아 몰라 ㅋㅋ ㅋㅋㅋ ㅎㅎ 오늘 아침 잘자 정말 진짜 그럼
기억 기억나 기억해 말했 말했지 말해줘 알려줘 생각
"""
_HAN_WEAK = (
    "的了吗呢吧啊呀哦嗯是我你您他她它们这那哪什么怎样谁在有和与就都也很还又再不没会能要想说去来到把被给让"
    "为着过个些只好对一上下里太"
)
_JAPANESE = """
です ます した して する いる いた ある あった この その あの どの これ それ あれ どれ ここ そこ
から まで より だけ など なに なん いつ どこ だれ どう なぜ です でし しょ った って てい ない
ませ まし せん とき こと もの よう たい だっ ので のに けど でも また もう まだ とて とか かな
ですか 何 誰 私 僕 俺 君 今 今日
"""
_KIN_TALK = """
ありがとうございます ありがとう こんにちは こんばんは おはようございます おはよう おやすみなさい
おやすみ そうですね そうだね なるほど 了解です 了解 わかりました わかった よろしくお願いします
いい天気 おめでとうございます おめでとう また明日 疲れた 寝るね どう思う 続けて 大好き お願いします
よろしく お疲れ様 ごめんなさい ごめん すみません 覚えていますか 覚えてる 覚えて 教えてください
教えて 言ってた 言った 言って だったっけ でしたっけ だっけ って何 何だった 思い出して すごい いいね
谢谢你 谢谢 多谢 你好 您好 早上好 晚上好 早安 晚安 再见 拜拜 好的 好啊 知道了 知道 还记得 记得
告诉我 告诉 今天 哈哈 可以 明白 觉得 时候 现在 一下 继续 然后 不错 太好了 辛苦了 没关系 不客气
太厉害了 厉害 恭喜你 恭喜 麻烦你了 麻烦你 麻烦 天气 有点累 对不起 明天见 睡了 试试 我爱你 你觉得呢
什么 怎么 哪里 哪个 谁 多少 为什么 是不是 有没有 我们 你们 他们 她们 自己 一个 这个 那个
"""
_DATES = """
january february march april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
lunes martes miercoles jueves viernes sabado domingo
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре
январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь
понедельник вторник среду четверг пятницу субботу воскресенье
"""

DATES = frozenset(_DATES.split())
"""Folded names of months and days. What was said then seldom says so itself."""
STOP_WORDS = frozenset(" ".join((_ENGLISH, _SPANISH, _RUSSIAN, _KOREAN, _JAPANESE)).split())
"""Folded words (no accents, ё as е) that carry no subject."""
SMALL_TALK = frozenset(
    " ".join(
        (
            _ENGLISH_TALK,
            _SPANISH_TALK,
            _RUSSIAN_TALK,
            _KOREAN_TALK,
        )
    ).split()
)
"""Folded words that by themselves give no reason to recall anything."""
KIN_TALK = tuple(sorted(_KIN_TALK.split(), key=len, reverse=True))
"""Japanese and Chinese phrases of that kind, the longest first: they know no spaces, so they are
taken out of a query before its words are read."""
WEAK_HAN = frozenset(_HAN_WEAK)
"""Chinese characters that serve grammar: a pair with one of them tells little."""

_FORMS = """
go went gone goes|buy bought|bring brought|think thought|take took taken|make made|get got gotten
give gave given|see saw seen|meet met|tell told|say said|find found|feel felt|leave left|keep kept
begin began begun|break broke broken|build built|catch caught|choose chose chosen|come came
draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|fight fought
fly flew flown|forget forgot forgotten|grow grew grown|hear heard|hold held|know knew known
learn learnt|lend lent|lose lost|mean meant|pay paid|ride rode ridden|ring rang rung
rise rose risen|run ran|sell sold|send sent|show shown|sing sang sung|sit sat|sleep slept
speak spoke spoken|spend spent|stand stood|steal stole stolen|stick stuck|swim swam swum
teach taught|tear tore torn|throw threw thrown|understand understood|wake woke woken
wear wore worn|win won|write wrote written|dream dreamt|hang hung|lead led|seek sought|shoot shot
shake shook shaken|strike struck|sweep swept|swear swore sworn|bite bit bitten|blow blew blown
feed fed|freeze froze frozen|hide hid hidden|bend bent|dig dug|lay laid|light lit|burn burnt
child children kid kids|man men|woman women|person people|foot feet|tooth teeth|mouse mice
wife wives|life lives|knife knives|mom mother mum mama mommy mummy|dad father daddy papa
grandma grandmother granny|grandpa grandfather|photo picture pic photograph|bike bicycle biking
movie film|tv television|favorite favourite|color colour|neighbor neighbour|doctor doc
fridge refrigerator
"""
SAME_WORD = {
    form: forms.split()[0]
    for line in _FORMS.strip().split("\n")
    for forms in line.split("|")
    for form in forms.split()
}
"""English words that no stemmer brings together: irregular forms, and names of one thing."""
