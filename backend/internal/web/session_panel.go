package web

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/color/palette"
	"image/png"
	"net/http"
	"net/url"

	"golang.org/x/image/draw"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
)

// maxDrawings is how many panels are drawn at the same time. Further requests wait, so that pictures cannot take the
// processors from the sessions themselves.
const maxDrawings = 2

// sessionPanel sends a small picture of what the glasses of an open session show now.
func (w *Web) sessionPanel(c *call) error { return w.sendPanel(c, thumbnail) }

// simulatorPanel sends the exact picture.
func (w *Web) simulatorPanel(c *call) error {
	return w.sendPanel(c, func(picture []byte) []byte { return picture })
}

func (w *Web) sendPanel(c *call, fit func(picture []byte) []byte) error {
	s, m, err := w.Dashboard.Sessions.Shown(c.Context(), c.account.ID, c.PathValue("session"))
	if err != nil {
		return err
	}
	select {
	case w.drawings <- struct{}{}:
		defer func() { <-w.drawings }()
	case <-c.Context().Done():
		return c.Context().Err()
	}
	picture := drawPanel(s.DeviceModel, m)
	if picture == nil {
		return errNotFound
	}
	c.rw.Header().Set("Content-Type", pngType)
	c.rw.WriteHeader(http.StatusOK)
	_, _ = c.rw.Write(fit(picture)) // the browser may have disconnected
	return nil
}

// panelURL returns the URL of a picture of what an open session shows, which the simulator page shows until its own
// program runs. It returns "" if the session shows nothing.
func (w *Web) panelURL(c *call, id string) (string, error) {
	if w.Dashboard == nil {
		return "", nil
	}
	s, m, err := w.Dashboard.Sessions.Shown(c.Context(), c.account.ID, id)
	if errors.Is(err, sessions.ErrClosed) {
		return "", nil
	}
	if model, _ := glasses.Model(s.DeviceModel); err != nil || model.Panel == nil ||
		m.Display.Type != glasses.TypeDisplayShow {
		return "", err
	}
	return "/s/" + url.PathEscape(id) + "/panel", nil
}

// maxThumbnail is the size in bytes above which a picture is reduced to a half of its width, and then to a quarter, with
// the colours of a palette. A page shows many pictures, each about 160 pixels high.
const maxThumbnail = 5_000

// thumbnail compresses the picture of a panel well. Pictures with many colours, such as photos, are also reduced.
func thumbnail(picture []byte) []byte {
	img, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return picture
	}
	best := picture
	if _, ok := img.(*image.Paletted); ok { // compressing any other well takes long, and it stays large
		best = compress(img)
	}
	for part := 2; part <= 4 && len(best) > maxThumbnail; part *= 2 {
		size := image.Rect(0, 0, img.Bounds().Dx()/part, img.Bounds().Dy()/part)
		small := image.NewRGBA(size)
		draw.ApproxBiLinear.Scale(small, size, img, img.Bounds(), draw.Src, nil)
		best = compress(withPalette(small))
	}
	return best
}

// withPalette returns an opaque picture with the nearest colours of a palette. It searches only once for colours that
// differ little, because a search is slow.
func withPalette(img *image.RGBA) *image.Paletted {
	out := image.NewPaletted(img.Rect, palette.Plan9)
	known := map[color.RGBA]uint8{}
	for i := range out.Pix {
		p := img.Pix[i*4:]
		c := color.RGBA{p[0] &^ 7, p[1] &^ 7, p[2] &^ 7, 0xff}
		at, ok := known[c]
		if !ok {
			at = uint8(out.Palette.Index(c)) // #nosec G115 -- the palette has 256 colours
			known[c] = at
		}
		out.Pix[i] = at
	}
	return out
}

func compress(img image.Image) []byte {
	var out bytes.Buffer
	_ = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, img) // a buffer never fails
	return out.Bytes()
}

// drawPanel draws what a session shows: the last tree, or nothing while the glasses are folded or not worn. It returns
// nil for a model without a panel.
func drawPanel(modelID string, m sessions.Memory) []byte {
	model, ok := glasses.Model(modelID)
	if !ok || model.Panel == nil {
		return nil
	}
	view := glasses.View{Focus: -1}
	if m.Display.Type == glasses.TypeDisplayShow {
		if show, err := glasses.ParseShow(m.Display.Payload); err == nil {
			view = render.Show(model, view, &show.Tree)
		}
	}
	if m.State != nil {
		view = m.State.Glasses.Seen(view)
	}
	return render.PNG(render.Draw(model, view))
}
