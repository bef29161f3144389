package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

var items = []string{"Mail", "Calendar", "Notes"}

// node is one node of a display tree.
type node = map[string]any

type desk struct {
	glasses *client
	index   int
	status  string
	hears   bool // transcription has been started; the service restarts it after a reconnect
}

// run runs the app. It returns once an error such as closed prevents all further commands.
func (d *desk) run() error {
	d.attempt("phrases.announce", node{"phrases": []string{"next item", "go back", "take a photo"}})
	d.listen()
	d.draw()
	d.speak("Desk is ready")
	for {
		e, err := d.glasses.next()
		if err != nil {
			return err
		}
		d.handle(e)
	}
}

func (d *desk) handle(e event) {
	p := e.payload
	switch {
	case e.typ == "input":
		d.input(p.Kind, p.Target)
	case e.typ == "transcript" && p.Final:
		d.heard(strings.ToLower(p.Text))
	case e.typ == "battery" && p.Level <= 15 && !p.Charging:
		d.warn(p.Level)
	case e.typ == "transcription":
		d.tellHearing(p.Running, p.Reason, p.Part)
	case e.typ == "permission", e.typ == "disabled", e.typ == "call":
		d.listen()
	case e.typ == "hinge" && p.State == "open", e.typ == "wear" && p.Worn, e.typ == "device",
		e.typ == "link" && (p.State == "connected" || p.State == "lossy"):
		d.listen()
		d.draw()
	}
}

// listen starts transcription unless it is running. If the glasses refuse it, the app tries again when their state
// changes.
func (d *desk) listen() {
	if d.hears {
		return
	}
	_, refused := d.attempt("transcription.start", node{})
	d.hears = refused == ""
}

// tellHearing tells the wearer that the app cannot hear them without their permission.
func (d *desk) tellHearing(running bool, reason, part string) {
	switch {
	case reason == "permission_denied" || reason == "disabled_by_user":
		d.status = "Not allowed: " + part
		d.draw()
	case running && strings.HasPrefix(d.status, "Not allowed: "):
		d.status = ""
		d.draw()
	}
}

func (d *desk) input(kind, target string) {
	item, isItem := strings.CutPrefix(target, "item-")
	switch {
	case kind == "capture":
		d.photo()
	case kind == "back":
		d.move(-1)
	case kind != "tap" && kind != "select":
	case target == "next":
		d.move(1)
	case target == "back":
		d.move(-1)
	case target == "photo":
		d.photo()
	case isItem:
		if i, err := strconv.Atoi(item); err == nil {
			d.open(i)
		}
	}
}

func (d *desk) heard(text string) {
	switch {
	case strings.Contains(text, "next"):
		d.move(1)
	case strings.Contains(text, "back"):
		d.move(-1)
	case strings.Contains(text, "photo"):
		d.photo()
	}
}

func (d *desk) move(by int) {
	d.index = (d.index + by + len(items)) % len(items)
	d.status = ""
	d.draw()
}

func (d *desk) open(index int) {
	d.index = index
	d.status = "Opened " + items[index]
	d.draw()
	d.speak(items[index])
}

func (d *desk) photo() {
	d.status = "Taking a photo"
	d.draw()
	picture, refused := d.attempt("camera.photo", node{"width": 640})
	switch refused {
	case "":
		d.status = fmt.Sprintf("Photo: %d bytes", len(picture))
	case "permission_denied":
		d.status = "The camera is not allowed"
	default:
		d.status = "No photo: " + refused
	}
	d.draw()
	d.attempt("clock.sleep", node{"ms": 1500})
	d.status = ""
	d.draw()
}

func (d *desk) warn(level int) {
	d.status = fmt.Sprintf("Battery low: %d %%", level)
	d.draw()
	d.speak("The battery is low")
}

func (d *desk) speak(text string) { d.attempt("speech.say", node{"text": text}) }

// draw shows the state. Folded glasses refuse the tree; the app draws it again when they are opened.
func (d *desk) draw() {
	if _, refused := d.attempt("display.show", node{"tree": d.tree()}); refused == "hinge_closed" {
		d.status = "The glasses were folded"
	}
}

// attempt sends a command and returns its data. refused is the error code if the glasses refused the command, or "".
// attempt reports a refusal on stderr and in the event log. If the session has ended, the following call of next
// returns the error.
func (d *desk) attempt(typ string, payload node) (data []byte, refused string) {
	data, err := d.glasses.command(typ, payload)
	if err == nil {
		return data, ""
	}
	e := &glassesError{"unreadable", err.Error()}
	if errors.As(err, &e); e.Code != "closed" {
		fmt.Fprintln(os.Stderr, "desk: refused:", e)
		d.glasses.send("com.example.refused", node{"code": e.Code, "message": e.Message})
	}
	return nil, e.Code
}

func (d *desk) tree() node {
	button := func(id, text string) node { return node{"type": "button", "id": id, "text": text} }
	var list []node
	for i, item := range items {
		if i == d.index {
			item = "> " + item
		}
		list = append(list, button("item-"+strconv.Itoa(i), item))
	}
	return node{"type": "column", "gap": 8, "padding": 16, "children": []node{
		{"type": "text", "text": "Desk", "style": "title"},
		{"type": "list", "gap": 4, "grow": 1, "overflow": "scroll", "children": list},
		{"type": "text", "text": d.status, "style": "caption", "colour": "#ffd000"},
		{"type": "row", "gap": 8, "children": []node{button("back", "Back"), button("next", "Next"),
			button("photo", "Photo")}},
	}}
}
