"""sentences.py - English sentences about a dozen subjects, the same on every machine.

Sentences of one subject are related and those of different subjects are not, so that their
similarities cover the range in which an embedding model is used.  Two collections share the
subjects but no pattern: one for calibration, one for testing.

SPDX-License-Identifier: Apache-2.0
"""
import random

# subject: words for the patterns, patterns to test on, patterns to calibrate with
SUBJECTS = {
    "cooking": (
        {"dish": ["lentil soup", "roast chicken", "mushroom risotto", "apple pie", "flatbread"],
         "step": ["let it rest", "season it well", "lower the heat", "taste it twice"],
         "time": ["ten minutes", "half an hour", "an hour and a half", "overnight"]},
        ["For a good {dish}, {step} and wait {time}.",
         "How long does {dish} take if I {step} first? My recipe says {time}."],
        ["My grandmother's {dish} needs {time}; after that you only {step}.",
         "Serve the {dish} warm, but {step} for {time} before you slice it."]),
    "weather": (
        {"place": ["the coast", "Zürich", "the northern valleys", "São Paulo", "the islands"],
         "sky": ["heavy rain", "light snow", "dense fog", "strong wind", "clear skies"],
         "when": ["before dawn", "by Thursday", "late in the afternoon", "over the weekend"]},
        ["Forecasters expect {sky} in {place} {when}.",
         "There will be {sky} across {place} {when}, so drive carefully."],
        ["We had planned a walk near {place} {when}, but the radio spoke of {sky}.",
         "Does {place} usually get {sky} {when} at this time of year?"]),
    "football": (
        {"team": ["the home side", "the visitors", "the champions", "a second-division club"],
         "moment": ["in the 89th minute", "after a corner", "from the penalty spot", "on a break"],
         "who": ["their captain", "a substitute", "the young goalkeeper", "the left back"]},
        ["{who} scored for {team} {moment} and the stadium went wild.",
         "It was 2-1 when {team} equalised {moment} through {who}."],
        ["Nobody marked {who}, and {team} were punished {moment}.",
         "The referee's decision {moment} cost {team} the match, said {who}."]),
    "medicine": (
        {"problem": ["a persistent cough", "lower back pain", "high blood pressure", "migraine"],
         "group": ["older adults", "children under five", "pregnant women", "shift workers"],
         "cure": ["regular exercise", "a low dose of the drug", "more sleep", "early screening"]},
        ["In {group}, {problem} often improves with {cure}.",
         "The trial found that {cure} halved the risk of {problem} among {group}."],
        ["Doctors warn that {problem} in {group} is rarely treated with {cure} alone.",
         "Is {cure} safe for {group} who suffer from {problem}?"]),
    "software": (
        {"part": ["the parser", "the database driver", "our build script", "the login service"],
         "fault": ["a memory leak", "a race condition", "an off-by-one error", "a timeout"],
         "act": ["reverted the commit", "added a regression test", "upgraded the compiler"]},
        ["There was {fault} in {part}, so we {act}.",
         "After we {act}, {part} no longer shows {fault} under load."],
        ["Users reported {fault} in {part} yesterday; Priya {act} within the hour.",
         "Why does {part} still have {fault} although somebody {act}?"]),
    "finance": (
        {"what": ["the central bank", "a regional lender", "the pension fund", "the start-up"],
         "move": ["raised interest rates", "cut its forecast", "sold government bonds",
                  "reported a loss of €40 million"],
         "why": ["as inflation slowed", "despite falling demand", "to calm the markets"]},
        ["On Monday {what} {move} {why}.",
         "Shares fell 3.2% because {what} {move} {why}."],
        ["Analysts were surprised that {what} {move} {why}.",
         "Last quarter, {what} {move} {why}, according to its annual report."]),
    "travel": (
        {"by": ["the night train", "a cheap flight", "the ferry", "an old bus"],
         "where": ["Lisbon", "the old town of Kraków", "a fishing village", "Kyoto"],
         "note": ["the tickets sold out", "our luggage arrived late", "nobody checked passports"]},
        ["We took {by} to {where}, where {note}.",
         "Book {by} to {where} early: last summer {note}."],
        ["Although {note}, going to {where} with {by} was the best part of the holiday.",
         "Would you recommend {by} for a first visit to {where}? I heard {note}."]),
    "astronomy": (
        {"body": ["a distant galaxy", "the moons of Jupiter", "a dying star", "an asteroid"],
         "tool": ["the space telescope", "a radio array in Chile", "amateur astronomers"],
         "fact": ["contains water ice", "is older than expected", "changes its brightness",
                  "moves faster than models predict"]},
        ["Images from {tool} suggest that {body} {fact}.",
         "What {tool} saw of {body} shows that it {fact}."],
        ["New data about {body}, collected with the help of {tool}, hint that it {fact}.",
         "Students asked how {tool} could tell that {body} {fact}."]),
    "gardening": (
        {"plant": ["tomatoes", "climbing roses", "young apple trees", "basil", "potatoes"],
         "care": ["water them in the evening", "cover the soil with straw", "prune them hard"],
         "risk": ["late frost", "slugs", "too much shade", "dry summers"]},
        ["{plant} suffer from {risk}; {care} to help them.",
         "To protect {plant} against {risk}, {care}."],
        ["My neighbour grows {plant} and never worries about {risk}; just {care}, she says.",
         "If {risk} threaten your {plant}, you should {care} at once."]),
    "music": (
        {"who": ["the string quartet", "a jazz trio", "the youth orchestra", "an unknown singer"],
         "piece": ["a slow waltz", "the second movement", "an old folk song", "three encores"],
         "how": ["without a conductor", "to a silent hall", "with astonishing ease"]},
        ["Last night {who} played {piece} {how}.",
         "Critics praised {who} for performing {piece} {how}."],
        ["I have never heard {piece} as {who} gave it: {how}, and far too fast.",
         "Tickets are free when {who} rehearse {piece} {how}."]),
    "law": (
        {"who": ["the supreme court", "a city council", "the tenant", "two former employees"],
         "act": ["rejected the appeal", "signed the contract", "demanded compensation",
                 "challenged the new rule"],
         "ground": ["on procedural grounds", "after months of talks", "for lack of evidence"]},
        ["{who} {act} {ground}.",
         "Lawyers confirmed that {who} {act} {ground}."],
        ["It is unclear whether {who} {act} {ground} or for political reasons.",
         "The newspaper's headline read: \"{who} {act} {ground}\"."]),
    "animals": (
        {"beast": ["a grey heron", "the neighbour's cat", "a family of otters", "two young foxes"],
         "does": ["waited by the pond", "crossed the frozen river", "slept through the storm"],
         "then": ["and caught a fish", "until the dogs barked", "as if nobody were watching"]},
        ["{beast} {does} {then}.",
         "From the window we saw how {beast} {does} {then}."],
        ["Early this morning {beast} {does} {then}, my daughter wrote in her diary.",
         "Have you noticed that {beast} {does} {then}?"]),
}


def expand(pattern, words, rng):
    text = pattern.format(**{slot: rng.choice(choices) for slot, choices in words.items()})
    return text[0].upper() + text[1:]


def sentences(count, calibration=False):
    """`count` different sentences, subjects in turn; count is at most 600."""
    rng = random.Random(2 if calibration else 1)
    found = []
    while len(found) < count:
        for words, test, calibrate in SUBJECTS.values():
            text = expand(rng.choice(calibrate if calibration else test), words, rng)
            if text not in found:
                found.append(text)
    return found[:count]
