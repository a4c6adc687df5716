"""Kernels in a row, whose iterations threads share.

Steps are in memory: each has the addresses of a function as of `entry.finding`, of its places and
of its body, its iterations, and how many of them a thread takes at a time, or 0 if one thread takes
all. `run_steps` runs them; meanwhile other threads are in `help_steps`. Between the two are these
words of a pool, in cache lines of their own:

    generation      odd while a step has iterations to take
    next            the first iteration that nobody took
    busy            threads that may be taking some
    running         whether there is a thread in `run_steps`
    failed          whether an iteration did
    step, table     what to run; yield, sleep: functions of the system, for those who wait

Only `run_steps` changes the step, after it has closed a generation and seen that nobody is busy. A
helper is busy before it looks whether a generation is open, so that either it sees that it is not,
or `run_steps` sees the helper. Nobody waits for a helper that has not come: the others take its
share.
"""

from __future__ import annotations

from hashlib import sha256

from .entry import finding

RUN_STEPS, HELP_STEPS = "run_steps", "help_steps"
LINE = 8                                            # words
GENERATION, NEXT, BUSY, RUNNING, FAILED, WORK = (LINE * number for number in range(6))
STEP, TABLE, YIELD, SLEEP = range(WORK, WORK + 4)
POOL_WORDS = WORK + LINE
LOOKS = 64              # at a word, before a thread offers the processor to others
PATIENCE = 1 << 13      # looks of a helper before it goes or, while something runs, sleeps
NAP = 20                # microseconds


def digest() -> str:
    """Of all functions that are the same for all kernels: other code, another digest."""
    return sha256("".join((running_steps("i64"), finding(1, "i64"))).encode()).hexdigest()


def running_steps(word: str) -> str:
    """`run_steps(table, steps, first, last, pool)` runs steps `first` to before `last`: 0, or the
    number of the one that failed, from 1 on. Without a pool, this thread takes everything.
    `help_steps(pool)` helps while something runs, and a little longer."""
    return _TAKE.format(**_words(word)) + _RUN.format(**_words(word)) + _HELP.format(**_words(word))


def _words(word: str) -> dict[str, object]:
    places = {name: f"getelementptr inbounds {word}, ptr %pool, {word} {place}"
              for name, place in (("generation", GENERATION), ("next", NEXT), ("busy", BUSY),
                                  ("running", RUNNING), ("failed", FAILED), ("step", STEP),
                                  ("table", TABLE), ("rest", YIELD), ("sleep", SLEEP))}
    return places | {"word": word, "record": f"{{ptr, ptr, ptr, {word}, {word}}}",
                     "align": 8 if word == "i64" else 4, "looks": LOOKS - 1, "patience": PATIENCE,
                     "nap": NAP, "run": RUN_STEPS, "help": HELP_STEPS}


_TAKE = """define internal void @take_iterations(ptr %pool) noinline nounwind {{
entry:
  %at_step = {step}
  %step = load ptr, ptr %at_step
  %at_table = {table}
  %table = load ptr, ptr %at_table
  %function = load ptr, ptr %step
  %second = getelementptr inbounds {record}, ptr %step, i32 0, i32 1
  %places = load ptr, ptr %second
  %third = getelementptr inbounds {record}, ptr %step, i32 0, i32 2
  %body = load ptr, ptr %third
  %fourth = getelementptr inbounds {record}, ptr %step, i32 0, i32 3
  %iterations = load {word}, ptr %fourth
  %fifth = getelementptr inbounds {record}, ptr %step, i32 0, i32 4
  %share = load {word}, ptr %fifth
  %next = {next}
  br label %take
take:
  %first = atomicrmw add ptr %next, {word} %share seq_cst, align {align}
  %some = icmp slt {word} %first, %iterations
  br i1 %some, label %work, label %done
work:
  %wanted = add {word} %first, %share
  %fits = icmp slt {word} %wanted, %iterations
  %last = select i1 %fits, {word} %wanted, {word} %iterations
  %status = call i32 %function(ptr %table, ptr %places, ptr %body, {word} %first, {word} %last)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %take, label %bad
bad:
  %failed = {failed}
  store atomic {word} 1, ptr %failed seq_cst, align {align}
  br label %take
done:
  ret void
}}
"""
_RUN = """define i32 @{run}(ptr %table, ptr %steps, i32 %first, i32 %last, ptr %pool) nounwind {{
entry:
  %alone = icmp eq ptr %pool, null
  %at_step = {step}
  %at_table = {table}
  %next = {next}
  %failed = {failed}
  %generation = {generation}
  %busy = {busy}
  %at_rest = {rest}
  %some = icmp slt i32 %first, %last
  br i1 %some, label %loop, label %good
loop:
  %i = phi i32 [%first, %entry], [%number, %more]
  %step = getelementptr inbounds {record}, ptr %steps, i32 %i
  %number = add nsw i32 %i, 1
  %fifth = getelementptr inbounds {record}, ptr %step, i32 0, i32 4
  %share = load {word}, ptr %fifth
  %unshared = icmp eq {word} %share, 0
  %whole = or i1 %alone, %unshared
  br i1 %whole, label %one, label %several
one:
  %function = load ptr, ptr %step
  %second = getelementptr inbounds {record}, ptr %step, i32 0, i32 1
  %places = load ptr, ptr %second
  %third = getelementptr inbounds {record}, ptr %step, i32 0, i32 2
  %body = load ptr, ptr %third
  %fourth = getelementptr inbounds {record}, ptr %step, i32 0, i32 3
  %iterations = load {word}, ptr %fourth
  %status = call i32 %function(ptr %table, ptr %places, ptr %body, {word} 0, {word} %iterations)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %more, label %done
several:
  store ptr %step, ptr %at_step
  store ptr %table, ptr %at_table
  store atomic {word} 0, ptr %next seq_cst, align {align}
  store atomic {word} 0, ptr %failed seq_cst, align {align}
  %open = atomicrmw add ptr %generation, {word} 1 seq_cst, align {align}
  call void @take_iterations(ptr %pool)
  %closed = atomicrmw add ptr %generation, {word} 1 seq_cst, align {align}
  br label %wait
wait:
  %look = phi {word} [0, %several], [%looked, %again], [%looked, %rest]
  %left = load atomic {word}, ptr %busy seq_cst, align {align}
  %gone = icmp eq {word} %left, 0
  br i1 %gone, label %together, label %again
again:
  %looked = add {word} %look, 1
  %turn = and {word} %looked, {looks}
  %tired = icmp eq {word} %turn, 0
  br i1 %tired, label %rest, label %wait
rest:
  %yield = load ptr, ptr %at_rest
  %rested = call i32 %yield()
  br label %wait
together:
  %any = load atomic {word}, ptr %failed seq_cst, align {align}
  %none = icmp eq {word} %any, 0
  br i1 %none, label %more, label %done
more:
  %unfinished = icmp slt i32 %number, %last
  br i1 %unfinished, label %loop, label %good
good:
  br label %done
done:
  %result = phi i32 [%number, %one], [%number, %together], [0, %good]
  br i1 %alone, label %end, label %stop
stop:
  %running = {running}
  store atomic {word} 0, ptr %running seq_cst, align {align}
  br label %end
end:
  ret i32 %result
}}
"""
_HELP = """define void @{help}(ptr %pool) nounwind {{
entry:
  %generation = {generation}
  %busy = {busy}
  %running = {running}
  %at_rest = {rest}
  %at_sleep = {sleep}
  br label %watch
watch:
  %look = phi {word} [0, %entry], [0, %left], [%looked, %again], [%looked, %rest], [%looked, %nap]
  %known = phi {word} [0, %entry], [%joined, %left], [%known, %again], [%known, %rest],
                      [%known, %nap]
  %now = load atomic {word}, ptr %generation seq_cst, align {align}
  %odd = trunc {word} %now to i1
  %new = icmp ne {word} %now, %known
  %join = and i1 %odd, %new
  br i1 %join, label %enter, label %idle
enter:
  %more = atomicrmw add ptr %busy, {word} 1 seq_cst, align {align}
  %joined = load atomic {word}, ptr %generation seq_cst, align {align}
  %open = trunc {word} %joined to i1
  br i1 %open, label %work, label %left
work:
  call void @take_iterations(ptr %pool)
  br label %left
left:
  %less = atomicrmw sub ptr %busy, {word} 1 seq_cst, align {align}
  br label %watch
idle:
  %looked = add {word} %look, 1
  %turn = and {word} %looked, {looks}
  %tired = icmp eq {word} %turn, 0
  br i1 %tired, label %choose, label %again
again:
  br label %watch
choose:
  %long = icmp uge {word} %looked, {patience}
  br i1 %long, label %ask, label %rest
rest:
  %yield = load ptr, ptr %at_rest
  %rested = call i32 %yield()
  br label %watch
ask:
  %runs = load atomic {word}, ptr %running seq_cst, align {align}
  %over = icmp eq {word} %runs, 0
  br i1 %over, label %done, label %nap
nap:
  %sleep = load ptr, ptr %at_sleep
  %slept = call i32 %sleep(i32 {nap})
  br label %watch
done:
  ret void
}}
"""
