package driver

import (
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
)

// Base contains the parts common to all drivers: the time, scheduled steps and output. Its zero value is ready for use.
type Base struct {
	// Now is the latest time, and Timers holds the scheduled steps.
	Now    int64
	Timers Timers
	outs   []Out
}

// Take implements Driver.
func (b *Base) Take() []Out {
	outs := b.outs
	b.outs = nil
	return outs
}

// Next implements Driver.
func (b *Base) Next() (at int64, ok bool) { return b.Timers.Next() }

// Tick implements Driver.
func (b *Base) Tick(now int64) {
	for {
		at, f := b.Timers.Pop(now)
		if f == nil {
			break
		}
		b.Now = max(b.Now, at)
		f()
	}
	b.Now = max(b.Now, now)
}

// SetPanel implements Driver for glasses whose panels do not vary.
func (b *Base) SetPanel(Panel) {}

// After schedules f to run in ms milliseconds.
func (b *Base) After(ms int64, f func()) *Timer { return b.Timers.Add(b.Now+ms, f) }

// Write outputs a write of data to the peripheral of link.
func (b *Base) Write(link string, data []byte) {
	b.outs = append(b.outs, Out{Write: &Write{Link: link, Data: data}})
}

// Answer outputs the answer to an Ask.
func (b *Base) Answer(ask int, m device.Material, err *glasses.Error) {
	b.outs = append(b.outs, Out{Answer: &Answer{Ask: ask, Material: m, Error: err}})
}

// Sense outputs an observation of the glasses.
func (b *Base) Sense(typ string, payload any) {
	b.outs = append(b.outs, Out{Sense: &Sense{Type: typ, Payload: payload}})
}

// Note outputs a line for the log.
func (b *Base) Note(text string) { b.outs = append(b.outs, Out{Note: text}) }

// Info outputs the data that the glasses reported about a link.
func (b *Base) Info(i Info) { b.outs = append(b.outs, Out{Info: &i}) }

// Drop asks the carrier to close the link. problem is a code of this package, and why is the reason for the log.
func (b *Base) Drop(link, problem, why string) {
	b.Note(why)
	b.outs = append(b.outs, Out{Drop: link, Problem: problem})
}
