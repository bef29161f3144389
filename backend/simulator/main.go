//go:build js && wasm

package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"image"
	"syscall/js"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/internal/secretscan"
)

// main exposes the device to the page as globalThis.glasses. It needs no lock, because only the page's single thread
// calls it.
func main() {
	var p player
	js.Global().Set("glasses", js.ValueOf(map[string]any{
		"words": js.FuncOf(func(js.Value, []js.Value) any {
			return text(map[string]any{"commands": glasses.CommandTypes(), "codes": glasses.CommandCodes()})
		}),
		"start": js.FuncOf(func(_ js.Value, a []js.Value) any {
			return message(p.start(a[0].String(), a[1].String(), a[2].String(), a[3].String(), a[4].String()))
		}),
		"agrees": js.FuncOf(func(_ js.Value, a []js.Value) any {
			return p.agrees(a[0].String(), a[1].String(), a[2].String())
		}),
		"handle": js.FuncOf(func(_ js.Value, a []js.Value) any { return message(handle(&p, millis(a[0]), a[1])) }),
		"control": js.FuncOf(func(_ js.Value, a []js.Value) any {
			return text(p.dev.Control(millis(a[0]), a[1].String(), []byte(a[2].String()), nil).Error)
		}),
		"answer":   js.FuncOf(func(_ js.Value, a []js.Value) any { answer(&p, a); return nil }),
		"kinds":    js.FuncOf(func(js.Value, []js.Value) any { return text(realKinds()) }),
		"problems": js.FuncOf(func(js.Value, []js.Value) any { return text(problemTexts()) }),
		"identify": js.FuncOf(func(_ js.Value, a []js.Value) any { return text(identify(a[0].String(), a[1].String())) }),
		"startReal": js.FuncOf(func(_ js.Value, a []js.Value) any {
			return message(p.startReal(millis(a[0]), a[1].String(), a[2].String(), a[3].String(), a[4].String()))
		}),
		"event":    js.FuncOf(func(_ js.Value, a []js.Value) any { event(&p, a); return nil }),
		"links":    js.FuncOf(func(js.Value, []js.Value) any { return text(p.links()) }),
		"leave":    js.FuncOf(func(_ js.Value, a []js.Value) any { p.leave(millis(a[0])); return nil }),
		"left":     js.FuncOf(func(js.Value, []js.Value) any { return p.left() }),
		"next":     js.FuncOf(func(js.Value, []js.Value) any { return next(&p) }),
		"tick":     js.FuncOf(func(_ js.Value, a []js.Value) any { p.tick(millis(a[0])); return nil }),
		"panel":    js.FuncOf(func(js.Value, []js.Value) any { return text(p.panelState()) }),
		"setPanel": js.FuncOf(func(_ js.Value, a []js.Value) any { p.setPanel(millis(a[0]), a[1].String()); return nil }),
		"check":    js.FuncOf(func(_ js.Value, a []js.Value) any { p.checkPanel(millis(a[0])); return nil }),
		"seen": js.FuncOf(func(_ js.Value, a []js.Value) any {
			p.seePanel(millis(a[0]), a[1].Bool(), a[2].Bool())
			return nil
		}),
		"cancel":   js.FuncOf(func(_ js.Value, a []js.Value) any { p.cancelCheck(millis(a[0])); return nil }),
		"take":     js.FuncOf(func(js.Value, []js.Value) any { return take(&p) }),
		"snapshot": js.FuncOf(func(js.Value, []js.Value) any { return text(p.dev.Snapshot()) }),
		"model":    js.FuncOf(func(js.Value, []js.Value) any { return text(p.dev.Model()) }),
		"reading":  js.FuncOf(func(js.Value, []js.Value) any { return text(p.read()) }),
		"picture":  js.FuncOf(func(js.Value, []js.Value) any { return drawn(&p) }),
		"preview":  js.FuncOf(func(_ js.Value, a []js.Value) any { return previewOn(shownBy(&p, a[1]), a[0].String()) }),
		"step":     js.FuncOf(func(_ js.Value, a []js.Value) any { return stepOf(shownBy(&p, a[0])) }),
		"show":     js.FuncOf(func(_ js.Value, a []js.Value) any { return showSnapshot(a[0].String()) }),
		"rebuild":  js.FuncOf(func(_ js.Value, a []js.Value) any { return rebuilt(a[0].String()) }),
		"digest":   js.FuncOf(func(_ js.Value, a []js.Value) any { return digest(a[0].String()) }),
		"redact":   js.FuncOf(func(_ js.Value, a []js.Value) any { return secretscan.Redact(a[0].String()) }),
		"wanted":   js.FuncOf(func(_ js.Value, a []js.Value) any { return text(p.wanted([]byte(a[0].String()))) }),
		"font":     js.FuncOf(func(_ js.Value, a []js.Value) any { return message(font(a[0].String(), a[1])) }),
	}))
	select {}
}

func millis(v js.Value) int64 { return int64(v.Float()) }

// message returns an error's text, or "" if there is no error.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// text encodes a value as JSON.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// answer answers a request of the device. The arguments are (now, ask, bytes or null, {code, message} or null).
func handle(p *player, now int64, data js.Value) error {
	if data.Type() == js.TypeString {
		return p.handle(now, []byte(data.String()), false)
	}
	return p.handle(now, bytesOf(data), true)
}

func bytesOf(v js.Value) []byte {
	b := make([]byte, v.Get("length").Int())
	js.CopyBytesToGo(b, v)
	return b
}

func arrayOf(b []byte) js.Value {
	v := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(v, b)
	return v
}

// answer expects the arguments (now, ask, bytes or null, {code, message} or null).
func answer(p *player, a []js.Value) {
	var m device.Material
	var refusal *glasses.Error
	if a[3].Truthy() {
		refusal = refusalOf(a[3].Get("code").String(), a[3].Get("message").String())
	} else {
		m.Bytes = bytesOf(a[2])
	}
	if p.simulated != nil {
		p.simulated.Answer(millis(a[0]), a[1].Int(), m, refusal)
	}
}

// event passes a Bluetooth event to the player. The arguments are (now, {kind, link, data or undefined, problem}), as
// reported by bluetooth.js.
func event(p *player, a []js.Value) {
	e := driver.Event{Kind: a[1].Get("kind").String(), Link: a[1].Get("link").String(),
		Problem: a[1].Get("problem").String()}
	if data := a[1].Get("data"); data.Truthy() {
		e.Data = bytesOf(data)
	}
	p.event(millis(a[0]), e)
}

// font adds a font. file is null if the page cannot load it.
func font(name string, file js.Value) error {
	if file.IsNull() {
		return fonts.Add(name, nil)
	}
	return fonts.Add(name, bytesOf(file))
}

// next returns the time of the next due step in milliseconds, or -1 if there is none.
func next(p *player) any {
	if at, ok := p.dev.Next(); ok {
		return float64(at)
	}
	return -1
}

// take returns a list of {frame}, {frame, body}, {ask}, {ask, pcm}, {connect}, {write, data, response}, {drop}, {info}
// and {note}.
// frame is JSON text, and body is the complete binary message. connect, write and drop are keys of links.
func take(p *player) any {
	list := js.Global().Get("Array").New()
	for _, o := range p.take() {
		entry := js.Global().Get("Object").New()
		switch {
		case o.Ask != nil:
			entry.Set("ask", text(o.Ask))
			if o.Ask.PCM != nil {
				entry.Set("pcm", arrayOf(o.Ask.PCM))
			}
		case o.Frame != nil:
			if !putFrame(entry, *o.Frame, o.Body) {
				continue
			}
		case o.Connect != nil:
			entry.Set("connect", o.Connect.Key)
		case o.Write != nil:
			entry.Set("write", o.Write.Link)
			entry.Set("data", arrayOf(o.Write.Data))
			entry.Set("response", o.Write.WithResponse)
		case o.Drop != "":
			entry.Set("drop", o.Drop)
		case o.Info != nil:
			entry.Set("info", text(o.Info))
		default:
			entry.Set("note", o.Note)
		}
		list.Call("push", entry)
	}
	return list
}

// putFrame sets the frame of an entry. It returns false if the body is over the limit, which the result then reports.
func putFrame(entry js.Value, f glasses.Frame, body []byte) bool {
	if body == nil {
		data, err := f.Encode()
		if err != nil {
			panic(err)
		}
		entry.Set("frame", string(data))
		return true
	}
	data, err := glasses.EncodeBinary(f, body)
	if err != nil {
		return false
	}
	entry.Set("body", arrayOf(data))
	entry.Set("frame", text(f))
	return true
}

// panelPicture is the picture that drawn last returned. It is reused, because the memory of this program never
// shrinks: a new picture each time would enlarge the page permanently.
var panelPicture *image.NRGBA

// drawn returns the wearer's view, in the form of picture.
func drawn(p *player) any {
	panelPicture = render.DrawOver(panelPicture, p.dev.Model(), p.seen())
	return picture(panelPicture)
}

// pixels is the page's array for pictures, as long as the largest so far. It is reused, because new arrays would fill
// the page's memory before the browser collects them.
var pixels = js.Global().Get("Uint8ClampedArray").New(0)

// picture returns an ImageData, which is valid until the next call, or null for a model without a panel.
func picture(img *image.NRGBA) any {
	if img == nil {
		return nil
	}
	if pixels.Length() < len(img.Pix) {
		pixels = js.Global().Get("Uint8ClampedArray").New(len(img.Pix))
	}
	data := pixels.Call("subarray", 0, len(img.Pix))
	js.CopyBytesToJS(data, img.Pix)
	return js.Global().Get("ImageData").New(data, img.Rect.Dx(), img.Rect.Dy())
}

// previewOn returns {picture, fit}, where fit is the preview as JSON, or null.
func previewOn(p *player, model string) any {
	if p == nil {
		return nil
	}
	found, ok := p.preview(model)
	if !ok {
		return nil
	}
	v := js.Global().Get("Object").New()
	v.Set("picture", picture(found.img))
	v.Set("fit", text(found))
	return v
}

// shownBy returns the glasses that the page shows: the player, or, if snapshot is not "", glasses in that state. It
// returns nil for a snapshot that cannot be shown.
func shownBy(p *player, snapshot js.Value) *player {
	if snapshot.String() == "" {
		return p
	}
	past, err := snapshotPlayer(snapshot.String())
	if err != nil {
		return nil
	}
	return past
}

// stepOf returns a step as JSON, or "".
func stepOf(p *player) string {
	if p == nil {
		return ""
	}
	return text(p.step())
}

// showSnapshot returns {picture, reading, wanted} of a snapshot, or null if it cannot be shown.
func showSnapshot(snapshot string) any {
	p, err := snapshotPlayer(snapshot)
	if err != nil {
		return nil
	}
	v := js.Global().Get("Object").New()
	v.Set("wanted", text(p.wanted(nil)))
	v.Set("picture", drawn(p))
	v.Set("reading", text(p.read()))
	return v
}

// rebuilt returns a list of moments as JSON, or "" if the request cannot be read.
func rebuilt(request string) string {
	m, err := rebuild(request)
	if err != nil {
		return ""
	}
	return text(m)
}

// digest returns the SHA-256 of a text in base64, the form in which content security policies identify scripts and
// styles.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// refusalOf returns the error for a missing picture. Users can only refuse access to the page's own camera.
func refusalOf(code, message string) *glasses.Error {
	refusal := &glasses.Error{Code: code, Message: message}
	if code == glasses.CodePermissionDenied {
		refusal.Part, refusal.By = glasses.PartCamera, glasses.ByPermission
	}
	return refusal
}
