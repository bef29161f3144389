package device

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
)

const (
	// captureTimeout is how long the host may take to deliver a picture, or a clip after the clip's end, in ms.
	captureTimeout = 10_000
	maxChunk       = 64 << 10 // bytes of sound in one answer
)

// capture is a photo or clip in progress.
type capture struct {
	c     *command
	video *glasses.Video // nil for a photo
	width int
	scene *picture  // the picture set by sim.camera when the capture began
	taken *Material // the clip, if the host delivered it before its end
	over  bool      // the clip's duration has passed
}

// photo answers with the picture set by sim.camera, or requests a picture from the host.
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

// video records a clip. It sends the result after the clip's duration has passed and the host has delivered the clip.
func (d *Device) video(c *command, p *glasses.Video) {
	if !d.free(c) {
		return
	}
	camera := d.model.Camera
	width := media.ClipWidth(min(p.Width, camera.Width), frames(p), camera.Width, camera.Height)
	t := &capture{c: c, video: p, scene: d.camera, width: width}
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
	ask := Ask{Kind: AskVideo, Width: t.width, FPS: p.FPS, DurationMs: p.DurationMs}
	d.ask(ask, t, func(m Material, err *glasses.Error) {
		if err != nil || t.over {
			d.take(t, m, err)
			return
		}
		t.taken = &m
	})
}

// frames returns the number of frames in a clip.
func frames(p *glasses.Video) int { return max(1, int(p.DurationMs*int64(p.FPS)/1000)) }

// free reports whether no capture is in progress. Otherwise it fails c with busy.
func (d *Device) free(c *command) bool {
	if d.capture != nil {
		d.fail(c, refuse(glasses.CodeBusy, "a capture is in progress"))
	}
	return d.capture == nil
}

// take ends a capture and answers its command with the material.
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

// abandon ends the current capture with an error.
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

// frame sends one picture of the video stream. It ignores a picture that cannot be decoded.
func (d *Device) frame(m Material, width int) {
	if p, err := media.JPEG(m.Bytes, width); err == nil {
		about := describe(glasses.Media{MIME: media.MIMEJPEG, Width: p.Width, Height: p.Height}, p.Bytes)
		d.putBinary(glasses.TypeVideoFrame, d.newID(), about, p.Bytes)
	}
}

// chunk sends one piece of the audio stream, and what was said in it.
func (d *Device) chunk(pcm []byte, rate int, transcript string) {
	about := glasses.Media{MIME: media.MIMESound, DurationMs: int64(len(pcm)) * 1000 / int64(2*rate), SampleRate: rate,
		Transcript: transcript}
	d.putBinary(glasses.TypeAudioChunk, d.newID(), describe(about, pcm), pcm)
}

// describe returns m with the digest and length of body.
func describe(m glasses.Media, body []byte) glasses.Media {
	sum := sha256.Sum256(body)
	m.SHA256, m.Bytes = hex.EncodeToString(sum[:]), len(body)
	return m
}

// picture is the picture set by sim.camera. It caches the version scaled to the last requested width.
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

// at returns the picture as a JPEG at most width pixels wide.
func (p *picture) at(width int) []byte {
	if p.width != width {
		if made, err := media.JPEG(p.raw, width); err == nil {
			p.width, p.scaled = width, made.Bytes
		}
	}
	return p.scaled
}

// clip returns a clip that repeats the picture.
func (p *picture) clip(frames, width int) []byte { return bytes.Repeat(p.at(width), frames) }
