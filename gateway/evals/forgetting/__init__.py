"""How much of a long conversation its memory still answers, by age, in four ways of remembering.

spans       where a live view would have folded it
facts       distinctive statements of a span, found without a model
keeping     a summarizer without a model that keeps a fixed share of what it reads
state       everything made, as JSON lines: a run that was ended goes on where it was
fingerprint the code and numbers that are evaluated, as digests
writers     chapters and gists by the program's own recorder
memory      the memory that stands at the end, in each mode
exam        what a model is asked to question, answer and grade, and how its words are read
examiner    questions, answers and grades, by a model or by code
report      shares and their spread
curve       the picture and the page
run         all of it, in order
"""
