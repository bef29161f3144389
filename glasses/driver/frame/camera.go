package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/media"
)

const (
	maxPhoto     = 256 << 10 // bytes of a JPEG file
	photoTime    = 9000      // ms, slightly less than the session waits
	photoRounds  = 10        // rounds of the automatic exposure, 100 ms each; guessed
	streamRounds = 1         // rounds between two pictures of a stream
	photoQuality = 90        // of a JPEG that was rotated
	leastWidth   = 100       // frame-codebase, source/application/lua_libraries/camera.c
	mostWidth    = 720
	haloWidth    = 640 // halo-firmware, PROTOCOL.md 7.11
)

// camera takes one picture at a time. The first of asks is in progress.
type camera struct {
	asks  []device.Ask
	file  []byte
	next  byte // number of the next piece
	timer *driver.Timer
}

func (c *camera) ask(d *Driver, a device.Ask) {
	if !d.ready {
		d.Answer(a.ID, device.Material{}, &glasses.Error{Code: glasses.CodeNotConnected,
			Message: "the glasses are not ready for pictures"})
		return
	}
	if c.asks = append(c.asks, a); len(c.asks) == 1 {
		c.begin(d)
	}
}

func (c *camera) begin(d *Driver) {
	a := c.asks[0]
	c.file, c.next = nil, 0
	width, rounds := haloWidth, byte(photoRounds)
	if !d.halo {
		width = min(max(a.Width, leastWidth), mostWidth) &^ 1
	}
	if a.Kind == device.AskFrame {
		rounds = streamRounds
	}
	c.timer = d.After(photoTime, func() {
		c.end(d, device.Material{}, &glasses.Error{Code: glasses.CodeTimeout,
			Message: "the glasses did not deliver the picture"})
	})
	arguments := append(binary.BigEndian.AppendUint16(nil, uint16(width)), rounds)
	d.link.urgent(data(opPhoto, arguments, func(problem string) {
		if problem != "" {
			c.fail(d, "the glasses did not take a picture: "+problem)
		}
	}))
}

// piece adds a piece of the file, which consists of its number and bytes. If isEnd is set, the piece contains only the
// number after the last one, and the file is complete.
func (c *camera) piece(d *Driver, data []byte, isEnd bool) {
	switch {
	case len(c.asks) == 0:
	case data[0] == c.next-1: // the piece was sent twice
	case data[0] != c.next || len(c.file)+len(data) > maxPhoto:
		c.fail(d, "a part of the picture was lost on its way")
	case !isEnd:
		c.next++
		c.file = append(c.file, data[1:]...)
	default:
		m, err := c.material(d.halo)
		c.end(d, m, err)
	}
}

func (c *camera) fail(d *Driver, why string) {
	if len(c.asks) > 0 {
		c.end(d, device.Material{}, &glasses.Error{Code: glasses.CodePlatform, Message: why})
	}
}

// end answers the first Ask and starts the next one.
func (c *camera) end(d *Driver, m device.Material, err *glasses.Error) {
	a := c.asks[0]
	c.asks = c.asks[1:]
	d.Timers.Stop(c.timer)
	d.Answer(a.ID, m, err)
	if len(c.asks) == 0 {
		return
	}
	if !d.ready {
		c.fail(d, err.Message)
		return
	}
	c.begin(d)
}

// material returns the upright picture. The sensor of a Frame is rotated to the right by 90 degrees
// (CitizenOneX/frame_msg, lib/rx/photo.dart).
func (c *camera) material(halo bool) (device.Material, *glasses.Error) {
	if halo {
		return device.Material{Bytes: c.file}, nil
	}
	size, err := jpeg.DecodeConfig(bytes.NewReader(c.file))
	if err == nil && (size.Width > mostWidth || size.Height > mostWidth) {
		err = fmt.Errorf("%dx%d pixels are too many", size.Width, size.Height)
	}
	var img image.Image
	if err == nil {
		img, err = jpeg.Decode(bytes.NewReader(c.file))
	}
	if err != nil {
		return device.Material{}, &glasses.Error{Code: glasses.CodePlatform,
			Message: fmt.Sprintf("read the picture of the glasses: %v", err)}
	}
	var file bytes.Buffer
	upright := media.Turn(img, media.TurnLeft)
	_ = jpeg.Encode(&file, upright, &jpeg.Options{Quality: photoQuality}) // writing to a buffer cannot fail
	return device.Material{Bytes: file.Bytes()}, nil
}
