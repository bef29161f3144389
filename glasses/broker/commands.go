package broker

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/service-dev/service/glasses"
)

// Command is a command without a result.
type Command struct {
	Type    string
	Payload json.RawMessage

	deadline time.Time
	askedOf  PeerID // Nobody after a restart, when any glasses may answer
	order    int64
	raw      []byte
}

// Pending returns the number of commands without a result.
func (b *Broker) Pending() int { return len(b.pending) }

// Command returns the pending command with this id.
func (b *Broker) Command(id string) (Command, bool) {
	c, ok := b.pending[id]
	return c, ok
}

// NextDeadline returns the earliest deadline of a command; ok is false if none is pending.
func (b *Broker) NextDeadline() (deadline time.Time, ok bool) {
	for _, c := range b.pending {
		if !ok || c.deadline.Before(deadline) {
			deadline, ok = c.deadline, true
		}
	}
	return deadline, ok
}

// ExtendDeadlines sets the deadline of every pending command to CommandWait from now. It is used when the glasses
// restart.
func (b *Broker) ExtendDeadlines(now time.Time) {
	for id, c := range b.pending {
		c.deadline = now.Add(b.options.CommandWait)
		b.pending[id] = c
	}
}

// ExpireCommands fails the commands past their deadline with timeout, the earliest first.
func (b *Broker) ExpireCommands(now time.Time) (out []Output) {
	for _, id := range b.byDeadline(func(c Command) bool { return !c.deadline.After(now) }) {
		out = append(out, b.FailCommand(now, id, glasses.CodeTimeout, "the glasses did not answer in time")...)
	}
	return out
}

// GlassesGone answers every pending command after the last glasses disconnected, the earliest deadline first. message
// is the error message for commands that fail.
func (b *Broker) GlassesGone(now time.Time, message string) (out []Output) {
	for _, id := range b.byDeadline(func(Command) bool { return true }) {
		out = append(out, b.notConnected(now, id, message)...)
	}
	return out
}

// NotConnected answers a pending command when no glasses are attached: with ok if it changes only the standing state,
// otherwise with not_connected.
func (b *Broker) NotConnected(now time.Time, id string) []Output {
	return b.notConnected(now, id, b.options.NoGlasses)
}

func (b *Broker) notConnected(now time.Time, id, message string) []Output {
	if c := b.pending[id]; needsNoGlasses(c.Type) {
		return b.answer(now, id, glasses.Result{OK: true}, glasses.ChipOf(c.Type), &c)
	}
	return b.FailCommand(now, id, glasses.CodeNotConnected, message)
}

func (b *Broker) byDeadline(match func(Command) bool) []string {
	return b.sorted(match, func(a, b Command) int { return a.deadline.Compare(b.deadline) })
}

// FailCommand answers a pending command with an error on behalf of the glasses.
func (b *Broker) FailCommand(now time.Time, id, code, message string) []Output {
	refusal := &glasses.Error{Code: code, Message: message}
	return b.answer(now, id, glasses.Result{Error: refusal}, glasses.ChipErrors, nil)
}

// answer answers a command on behalf of the glasses. The output's Answered is set if the command succeeded.
func (b *Broker) answer(now time.Time, id string, result glasses.Result, chip string, answered *Command) []Output {
	delete(b.pending, id)
	b.recent.add(keyOf("", id, glasses.KindResult), sentFrame{})
	payload := Payload(result)
	return []Output{
		{Action: ToApps, Data: Encode(now, glasses.TypeResult, id, payload)},
		{Action: Append, Answered: answered, Row: glasses.Event{
			At: now.UnixMilli(), Kind: glasses.KindResult, Chip: chip, Type: glasses.TypeResult, ID: id,
			Sender: glasses.SenderService, Payload: payload,
		}},
	}
}

// HandOver assigns the pending commands of disconnected glasses to other glasses, and returns the commands' frames in
// the order in which the apps sent them.
func (b *Broker) HandOver(left, next PeerID) (frames [][]byte) {
	ids := b.sorted(func(c Command) bool { return c.askedOf == left },
		func(a, b Command) int { return cmp.Compare(a.order, b.order) })
	for _, id := range ids {
		c := b.pending[id]
		c.askedOf = next
		b.pending[id] = c
		frames = append(frames, c.raw)
	}
	return frames
}

func (b *Broker) sorted(match func(Command) bool, order func(a, b Command) int) []string {
	var ids []string
	for id, c := range b.pending {
		if match(c) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y string) int {
		return cmp.Or(order(b.pending[x], b.pending[y]), cmp.Compare(x, y))
	})
	return ids
}

// add records a command that was sent at the given time. Its deadline allows for the command's own duration.
func (b *Broker) add(id string, c Command, asked time.Time, parsed any) {
	c.deadline = asked.Add(b.options.CommandWait)
	switch p := parsed.(type) {
	case *glasses.Sleep:
		c.deadline = c.deadline.Add(time.Duration(p.Ms) * time.Millisecond)
	case *glasses.Video:
		c.deadline = c.deadline.Add(time.Duration(p.DurationMs) * time.Millisecond)
	}
	b.commands++
	c.order = b.commands
	if b.pending == nil {
		b.pending = map[string]Command{}
	}
	b.pending[id] = c
}
