package device

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/media"
)

const (
	// captureTimeout is how long the host may take for a picture, and for a clip after its time, in ms.
	captureTimeout = 10_000
	maxChunk       = 64 << 10 // bytes of sound at once
)

// capture is a photo or a clip that is being taken.
type capture struct {
	c     *command
	video *glasses.Video // nil for a photo
	width int
	scene *picture  // what sim.camera showed when it began
	taken *Material // the clip, before its time is over
	over  bool      // the clip's time is over
}

// photo asks the host for a picture, or takes what sim.camera put there.
func (d *Device) photo(c *command, p *glasses.Photo) {
	if !d.free(c) {
		return
	}
	t := &capture{c: c, width: min(p.Width, d.model.Camera.Width)}
	d.capture = t
	if d.camera != nil {
		d.take(t, Material{Bytes: d.camera.at(t.width)}, nil)
		return
	}
	d.after(captureTimeout, t, func() { d.abandon(reason(glasses.CodeTimeout)) })
	d.ask(Ask{Kind: AskPhoto, Width: t.width}, t, func(m Material, err *glasses.Error) { d.take(t, m, err) })
}

// video takes a clip; its result comes when its time is over, and not before the host has it.
func (d *Device) video(c *command, p *glasses.Video) {
	if !d.free(c) {
		return
	}
	camera := d.model.Camera
	t := &capture{c: c, video: p, scene: d.camera, width: media.ClipWidth(min(p.Width, camera.Width), frames(p), camera.Width, camera.Height)}
	d.capture = t
	d.after(p.DurationMs, t, func() {
		t.over = true
		switch {
		case t.taken != nil:
			d.take(t, *t.taken, nil)
		case t.scene != nil:
			d.take(t, Material{Bytes: t.scene.clip(frames(p), t.width)}, nil)
		}
	})
	d.after(p.DurationMs+captureTimeout, t, func() { d.abandon(reason(glasses.CodeTimeout)) })
	if t.scene != nil {
		return
	}
	d.ask(Ask{Kind: AskVideo, Width: t.width, FPS: p.FPS, DurationMs: p.DurationMs}, t, func(m Material, err *glasses.Error) {
		if err != nil || t.over {
			d.take(t, m, err)
			return
		}
		t.taken = &m
	})
}

// frames is how many a clip has.
func frames(p *glasses.Video) int { return max(1, int(p.DurationMs*int64(p.FPS)/1000)) }

func (d *Device) free(c *command) bool {
	if d.capture != nil {
		d.fail(c, refuse(glasses.CodeBusy, "a capture is under way"))
	}
	return d.capture == nil
}

// take ends a capture with what was taken.
func (d *Device) take(t *capture, m Material, err *glasses.Error) {
	if err != nil {
		d.abandon(err)
		return
	}
	var p media.Picture
	var broken error
	about := glasses.Media{MIME: media.MIMEJPEG}
	if t.video == nil {
		p, broken = media.JPEG(m.Bytes, t.width)
	} else {
		p, broken = media.Clip(m.Bytes, frames(t.video), t.width)
		about.MIME, about.DurationMs = media.MIMEClip, t.video.DurationMs
	}
	if broken != nil {
		d.abandon(refuse(glasses.CodePlatform, broken.Error()))
		return
	}
	d.over(t)
	about.Width, about.Height = p.Width, p.Height
	about = describe(about, p.Bytes)
	d.finish(t.c, glasses.Result{OK: true, Media: &about}, p.Bytes)
}

// abandon ends the capture that is under way without a picture.
func (d *Device) abandon(err *glasses.Error) {
	t := d.capture
	d.over(t)
	d.fail(t.c, err)
}

func (d *Device) over(t *capture) {
	d.queue.cancel(t)
	d.forget(t)
	d.capture = nil
}

// frame lets one picture of the video stream out; one that cannot be read is left out.
func (d *Device) frame(m Material, width int) {
	if p, err := media.JPEG(m.Bytes, width); err == nil {
		d.putBinary(glasses.TypeVideoFrame, d.newID(), describe(glasses.Media{MIME: media.MIMEJPEG, Width: p.Width, Height: p.Height}, p.Bytes), p.Bytes)
	}
}

// chunk lets one piece of the audio stream out.
func (d *Device) chunk(pcm []byte, rate int) {
	about := glasses.Media{MIME: media.MIMESound, DurationMs: int64(len(pcm)) * 1000 / int64(2*rate), SampleRate: rate}
	d.putBinary(glasses.TypeAudioChunk, d.newID(), describe(about, pcm), pcm)
}

// describe fills in what the bytes themselves tell.
func describe(m glasses.Media, body []byte) glasses.Media {
	sum := sha256.Sum256(body)
	m.SHA256, m.Bytes = hex.EncodeToString(sum[:]), len(body)
	return m
}

// picture is what sim.camera put before the lens. Scaling is remembered for the width that was asked last.
type picture struct {
	raw    []byte
	width  int
	scaled []byte
}

func readPicture(body []byte) (*picture, *glasses.Error) {
	if err := media.Check(body); err != nil {
		return nil, refuse(glasses.CodeBadPayload, err.Error())
	}
	return &picture{raw: bytes.Clone(body)}, nil
}

// at gives the picture as a JPEG of at most that width.
func (p *picture) at(width int) []byte {
	if p.width != width {
		if made, err := media.JPEG(p.raw, width); err == nil {
			p.width, p.scaled = width, made.Bytes
		}
	}
	return p.scaled
}

// clip gives so many frames of it.
func (p *picture) clip(frames, width int) []byte { return bytes.Repeat(p.at(width), frames) }
