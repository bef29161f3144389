package gateway

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/glasses/assistantscript"
)

// Limits on what is kept of conversations, in the memory of this process only, until the memory model has read it.
const (
	maxTranscript  = 32 << 10 // bytes of one conversation, its last ones
	maxTranscripts = 1024
	mergeAfter     = time.Minute // without a call of the user
	mergeWithin    = time.Hour   // of the first of its calls, even if more follow
	mergeEvery     = 5 * time.Second
)

// transcript is what a user and an assistant said in a conversation that is remembered. Its fields are guarded by the
// mutex of transcripts.
type transcript struct {
	who        Caller
	generation memory.Generation // of the profile when the conversation began
	text       string
	remember   []string // lines that a script wants to remember; a script reads no text
	scripted   bool
	live       bool // a realtime session that has not ended
	last       time.Time
	due        time.Time
	began      time.Time // of a conversation of calls
}

func (t *transcript) user() memory.User {
	return memory.User{Account: t.who.Account, Project: t.who.Project, Secret: t.who.User}
}

func (t *transcript) isEmpty() bool { return t.text == "" && len(t.remember) == 0 }

// transcripts are the conversations of this process whose memories are not written yet.
type transcripts struct {
	mu      sync.Mutex
	open    map[*transcript]bool
	merging map[memory.User]bool // users whose profile is being written; one at a time
}

func newTranscripts() *transcripts {
	return &transcripts{open: map[*transcript]bool{}, merging: map[memory.User]bool{}}
}

// add adds a transcript. If the process or the account has too many, it removes the account's oldest one that has ended
// or may have ended, and returns it; without such a one, it does not add t and returns t itself.
func (ts *transcripts) add(t *transcript, share int) (pushedOut *transcript) {
	ofAccount := 0
	for o := range ts.open {
		if o.who.Account != t.who.Account {
			continue
		}
		if ofAccount++; !o.live && (pushedOut == nil || o.last.Before(pushedOut.last)) {
			pushedOut = o
		}
	}
	if ofAccount < max(1, maxTranscripts/share) && len(ts.open) < maxTranscripts {
		ts.open[t] = true
		return nil
	}
	if pushedOut == nil {
		return t
	}
	delete(ts.open, pushedOut)
	ts.open[t] = true
	return pushedOut
}

// note adds to the transcript of a user's conversation of calls, which is due a while later. A call that repeats what
// was said before replaces it. note returns a transcript that had to make room; see add.
func (ts *transcripts) note(t *transcript, now time.Time, share int) (pushedOut *transcript) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.began, t.last, t.due = now, now, now.Add(mergeAfter)
	for o := range ts.open {
		if !o.live && o.scripted == t.scripted && o.due.After(o.last) && o.user() == t.user() {
			// The conversation began with the earlier call: an erasure since then also covers what it repeats.
			t.generation, t.began = o.generation, o.began
			if t.scripted {
				t.remember = strings.Split(assistantscript.Merge("", append(o.remember, t.remember...)), "\n")
			} else if !repeats(t.text, o.text) {
				t.text = lastLines(o.text + t.text)
			}
			if latest := t.began.Add(mergeWithin); t.due.After(latest) {
				t.due = latest
			}
			delete(ts.open, o)
			break
		}
	}
	return ts.add(t, share)
}

// repeats reports whether a call's text contains the end of what was said before.
func repeats(text, before string) bool {
	const end = 1 << 10 // bytes
	return strings.Contains(text, before[max(0, len(before)-end):])
}

// begin adds the transcript of a realtime session. It returns false if there are too many.
func (ts *transcripts) begin(t *transcript, now time.Time, share int) (pushedOut *transcript, ok bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.live, t.last = true, now
	pushedOut = ts.add(t, share)
	if pushedOut == t {
		return nil, false
	}
	return pushedOut, true
}

// say appends a line to the transcript of a realtime session.
func (ts *transcripts) say(t *transcript, line wire.Line) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.text = appendLine(t.text, line)
}

// end makes the transcript of a realtime session due.
func (ts *transcripts) end(t *transcript, lines []string, now time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.live, t.last, t.due, t.remember = false, now, now, lines
	if t.isEmpty() {
		delete(ts.open, t)
	}
}

// take removes and returns the transcripts that are due, oldest first, at most one of each user. Until done is called,
// no other transcript of these users is taken. With all, it also takes those that are not due, and what was said in
// sessions that go on.
func (ts *transcripts) take(now time.Time, all bool) (taken []*transcript) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	byTime := slices.SortedFunc(maps.Keys(ts.open), func(a, b *transcript) int {
		return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.text, b.text))
	})
	for _, t := range byTime {
		if ts.isDue(t, now, all) && !ts.merging[t.user()] {
			taken = append(taken, ts.takeOne(t))
		}
	}
	return taken
}

// isDue reports whether a transcript is to be taken. The caller must hold mu.
func (ts *transcripts) isDue(t *transcript, now time.Time, all bool) bool {
	return !t.isEmpty() && (all || !t.live && !t.due.After(now))
}

// takeOne removes a transcript and returns it, or what was said so far in a session that goes on. The caller must hold
// mu.
func (ts *transcripts) takeOne(t *transcript) *transcript {
	if !t.live {
		delete(ts.open, t)
	}
	ts.merging[t.user()] = true
	taken := *t
	taken.live = false
	t.text, t.remember = "", nil
	return &taken
}

// done ends the work on a user's profile. It returns the user's oldest transcript that is due, on which the work goes
// on, or nil.
func (ts *transcripts) done(u memory.User, now time.Time, all bool) *transcript {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.merging, u)
	var next *transcript
	for t := range ts.open {
		if t.user() == u && ts.isDue(t, now, all) && (next == nil || t.last.Before(next.last)) {
			next = t
		}
	}
	if next == nil {
		return nil
	}
	return ts.takeOne(next)
}

// putBack adds a transcript again whose memory cannot be written yet.
func (ts *transcripts) putBack(t *transcript) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.merging, t.user())
	ts.open[t] = true
}

// release ends the work on a user's profile.
func (ts *transcripts) release(u memory.User) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.merging, u)
}

// claim marks the user of a transcript that was pushed out, unless the user's profile is being written.
func (ts *transcripts) claim(t *transcript) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.merging[t.user()] {
		return false
	}
	ts.merging[t.user()] = true
	return true
}

// transcriptOf returns the last maxTranscript bytes of a conversation.
func transcriptOf(lines []wire.Line) (text string) {
	start, size := len(lines), 0
	for start > 0 && size < maxTranscript {
		start--
		size += len(spokenLine(lines[start]))
	}
	var said strings.Builder
	for _, l := range lines[start:] {
		said.WriteString(spokenLine(l))
	}
	return lastLines(said.String())
}

// appendLine appends what was said, and cuts the beginning of a text that is too long.
func appendLine(text string, line wire.Line) string { return lastLines(text + spokenLine(line)) }

// spokenLine returns what was said as lines of a transcript. Each begins with its speaker, so that no text can pretend
// to be another's.
func spokenLine(line wire.Line) string {
	said := strings.TrimSpace(line.Text)
	if said == "" {
		return ""
	}
	return line.Role + speaks + strings.ReplaceAll(memory.AsLines(tail(said, maxTranscript)), "\n",
		"\n"+line.Role+speaks) + "\n"
}

const speaks = ": " // between the speaker and what was said

// lastLines returns the last maxTranscript bytes of a transcript. A line whose beginning is cut off keeps its speaker.
func lastLines(text string) string {
	cut := len(text) - maxTranscript
	if cut <= 0 {
		return text
	}
	line := text[strings.LastIndexByte(text[:cut], '\n')+1:] // that contains the first byte that is kept
	speaker := line[:strings.Index(line, speaks)+len(speaks)]
	rest := text[cut:]
	if end := strings.IndexByte(rest, '\n'); end < len(speaker) {
		return strings.Clone(rest[end+1:])
	}
	return speaker + tail(rest, maxTranscript-len(speaker))
}

// tail returns the last bytes of a text, at most the number most.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return strings.Clone(text)
}
