//go:build js && wasm

package main

import (
	"encoding/json"
	"syscall/js"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/device"
	"github.com/service-dev/service/proto/glasses/render"
)

// main offers the device to the page as globalThis.glasses and then only answers its calls: the page's one thread is the
// only caller, so nothing here needs a lock.
func main() {
	var p player
	js.Global().Set("glasses", js.ValueOf(map[string]any{
		"words": js.FuncOf(func(js.Value, []js.Value) any {
			return text(map[string]any{"commands": commandTypes(), "codes": glasses.CommandCodes()})
		}),
		"start": js.FuncOf(func(_ js.Value, a []js.Value) any {
			return message(p.start(a[0].String(), a[1].String(), a[2].String(), a[3].String()))
		}),
		"agrees": js.FuncOf(func(_ js.Value, a []js.Value) any { return p.agrees(a[0].String(), a[1].String()) }),
		"handle": js.FuncOf(func(_ js.Value, a []js.Value) any { return message(handle(&p, moment(a[0]), a[1])) }),
		"control": js.FuncOf(func(_ js.Value, a []js.Value) any {
			return text(p.dev.Control(moment(a[0]), a[1].String(), []byte(a[2].String()), nil).Error)
		}),
		"answer":   js.FuncOf(func(_ js.Value, a []js.Value) any { answer(&p, a); return nil }),
		"next":     js.FuncOf(func(js.Value, []js.Value) any { return next(&p) }),
		"tick":     js.FuncOf(func(_ js.Value, a []js.Value) any { p.dev.Tick(moment(a[0])); return nil }),
		"take":     js.FuncOf(func(js.Value, []js.Value) any { return take(&p) }),
		"snapshot": js.FuncOf(func(js.Value, []js.Value) any { return text(p.dev.Snapshot()) }),
		"model":    js.FuncOf(func(js.Value, []js.Value) any { return text(p.dev.Model()) }),
		"reading":  js.FuncOf(func(js.Value, []js.Value) any { return text(p.read()) }),
		"picture":  js.FuncOf(func(js.Value, []js.Value) any { return picture(&p) }),
	}))
	select {}
}

func moment(v js.Value) int64 { return int64(v.Float()) }

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// text is a value as JSON; every value here encodes.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func commandTypes() []string {
	var types []string
	for _, c := range glasses.Commands() {
		types = append(types, c.Type)
	}
	return types
}

// handle takes a string or a Uint8Array.
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

// answer takes (now, ask, bytes or null, {code, message} or null).
func answer(p *player, a []js.Value) {
	var m device.Material
	var refusal *glasses.Error
	if a[3].Truthy() {
		refusal = &glasses.Error{Code: a[3].Get("code").String(), Message: a[3].Get("message").String()}
	} else {
		m.Bytes = bytesOf(a[2])
	}
	p.dev.Answer(moment(a[0]), a[1].Int(), m, refusal)
}

// next is when something is due by itself, in ms; -1 for never.
func next(p *player) any {
	if at, ok := p.dev.Next(); ok {
		return float64(at)
	}
	return -1
}

// take gives a list of {frame} or {frame, body} or {ask}: frames are JSON text, body the whole binary message.
func take(p *player) any {
	list := js.Global().Get("Array").New()
	for _, o := range p.dev.Take() {
		entry := js.Global().Get("Object").New()
		switch {
		case o.Ask != nil:
			entry.Set("ask", text(o.Ask))
		case o.Body != nil:
			data, err := glasses.EncodeBinary(o.Frame, o.Body)
			if err != nil {
				continue // over the limit; the result still tells of it
			}
			entry.Set("body", arrayOf(data))
			entry.Set("frame", text(o.Frame))
		default:
			data, err := o.Frame.Encode()
			if err != nil {
				panic(err)
			}
			entry.Set("frame", string(data))
		}
		list.Call("push", entry)
	}
	return list
}

// picture is {width, height, data} in RGBA, or null for a model without a panel.
func picture(p *player) any {
	img := render.Draw(p.dev.Model(), p.dev.Snapshot().View)
	if img == nil {
		return nil
	}
	v := js.Global().Get("Object").New()
	v.Set("width", img.Rect.Dx())
	v.Set("height", img.Rect.Dy())
	v.Set("data", arrayOf(img.Pix))
	return v
}
