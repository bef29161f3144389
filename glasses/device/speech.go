package device

import (
	"unicode/utf8"

	"github.com/service-dev/service/glasses"
)

// Timing of speech, in ms.
const (
	msPerCharacter = 60
	shortestSpeech = 300
)

// saying is a text that is being spoken or is waiting to be spoken.
type saying struct {
	id string
	p  glasses.Say
}

func (d *Device) say(c *command, p *glasses.Say) {
	if len(d.says) >= maxSays {
		d.fail(c, refuse(glasses.CodeBusy, "too many texts are waiting to be spoken"))
		return
	}
	d.ok(c)
	d.says = append(d.says, saying{c.id, *p})
	if len(d.says) == 1 {
		d.speak()
	}
}

// speak starts the first queued text.
func (d *Device) speak() {
	s := d.says[0]
	d.tell(Ask{Kind: AskSay, Text: s.p.Text, Language: s.p.Language})
	took := max(shortestSpeech, msPerCharacter*int64(utf8.RuneCountInString(s.p.Text)))
	d.after(took, &d.says, func() {
		d.says = d.says[1:]
		d.event(glasses.TypeSpeech, glasses.SpeechState{ID: s.id, State: "finished"})
		if len(d.says) > 0 {
			d.speak()
		}
	})
}

// hush stops the current text and drops the queued ones.
func (d *Device) hush() {
	if len(d.says) == 0 {
		return
	}
	d.queue.cancel(&d.says)
	d.tell(Ask{Kind: AskHush})
	for _, s := range d.says {
		d.event(glasses.TypeSpeech, glasses.SpeechState{ID: s.id, State: "stopped"})
	}
	d.says = nil
}
