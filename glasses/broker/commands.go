package broker

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/service-dev/service/glasses"
)

// Command is a command that has no result yet.
type Command struct {
	Type    string
	Payload json.RawMessage
	// Value is the decoded Payload (see glasses.ParseCommand). It is nil for a malformed payload, and for display.show,
	// because a decoded tree takes many times the memory of its text.
	Value any

	deadline time.Time
	askedOf  PeerID // NoPeer after a restart, when any glasses may answer
	order    int64
	raw      []byte // nil after a restart
}

// NewCommand returns a command and decodes its payload.
func NewCommand(typ string, payload json.RawMessage) Command {
	c := Command{Type: typ, Payload: payload}
	if value, err := glasses.ParseCommand(typ, payload); err == nil && typ != glasses.TypeDisplayShow {
		c.Value = value
	}
	return c
}

// Pending returns the number of commands without a result.
func (b *Broker) Pending() int { return len(b.pending) }

// Command returns the pending command with this ID.
func (b *Broker) Command(id string) (Command, bool) {
	c, ok := b.pending[id]
	return c, ok
}

// NextDeadline returns the earliest deadline of a command. ok is false if no command is pending.
func (b *Broker) NextDeadline() (deadline time.Time, ok bool) {
	for _, c := range b.pending {
		if !ok || c.deadline.Before(deadline) {
			deadline, ok = c.deadline, true
		}
	}
	return deadline, ok
}

// ExtendDeadlines restarts the deadline of every pending command, as if the command were sent now. Hosts call it when
// the glasses restart.
func (b *Broker) ExtendDeadlines(now time.Time) {
	for id, c := range b.pending {
		c.deadline = b.deadline(now, c.Value)
		b.pending[id] = c
	}
}

// deadline returns the latest time for the result of a command sent at asked. It includes the command's own duration.
func (b *Broker) deadline(asked time.Time, value any) time.Time {
	deadline := asked.Add(b.options.CommandWait)
	switch p := value.(type) {
	case *glasses.Sleep:
		deadline = deadline.Add(time.Duration(p.Ms) * time.Millisecond)
	case *glasses.Video:
		deadline = deadline.Add(time.Duration(p.DurationMs) * time.Millisecond)
	}
	return deadline
}

// ExpireCommands fails the commands whose deadlines have passed, the earliest first. Their error is timeout.
func (b *Broker) ExpireCommands(now time.Time) (out []Output) {
	for _, id := range b.byDeadline(func(c Command) bool { return !c.deadline.After(now) }) {
		out = append(out, b.FailCommand(now, id, glasses.CodeTimeout, "the glasses did not answer in time")...)
	}
	return out
}

// GlassesGone answers every pending command, the earliest deadline first. Hosts call it after the last glasses have
// disconnected. message is the error message of commands that fail.
func (b *Broker) GlassesGone(now time.Time, message string) (out []Output) {
	for _, id := range b.byDeadline(func(Command) bool { return true }) {
		out = append(out, b.notConnected(now, id, message)...)
	}
	return out
}

// NotConnected answers a pending command when no glasses are attached. The result is ok if the command changes only the
// standing state, and not_connected otherwise.
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

// HandOver assigns the pending commands of left, which has disconnected, to next. It returns their frames in the order
// in which the apps sent them. If left is NoPeer, it hands over the commands restored from an earlier broker.
func (b *Broker) HandOver(now time.Time, left, next PeerID) (frames [][]byte) {
	ids := b.sorted(func(c Command) bool { return c.askedOf == left },
		func(a, b Command) int { return cmp.Compare(a.order, b.order) })
	for _, id := range ids {
		c := b.pending[id]
		c.askedOf = next
		if c.raw == nil {
			c.raw = Encode(now, c.Type, id, c.Payload)
		}
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

// add records a command that was sent at asked.
func (b *Broker) add(id string, c Command, asked time.Time) {
	c.deadline = b.deadline(asked, c.Value)
	if c.Type == glasses.TypeDisplayShow {
		c.Value = nil
	}
	b.commands++
	c.order = b.commands
	if b.pending == nil {
		b.pending = map[string]Command{}
	}
	b.pending[id] = c
}
