package device_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image/jpeg"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media/exiftest"
)

// Photos, clips and streams are upright and have no metadata, both for the picture of sim.camera and for the host's.
func TestPictures_AreUprightWithoutMetadata(t *testing.T) {
	for o := 1; o <= 8; o++ {
		picture := exiftest.JPEG(binary.LittleEndian, o)
		for _, isSet := range []bool{true, false} {
			b := newBench(t, "rayban_display")
			b.seen = picture
			if isSet {
				b.must(glasses.SimCamera, "", picture...)
			}
			for command, payload := range map[string]string{glasses.TypeCameraPhoto: `{"width":64}`,
				glasses.TypeCameraVideo: `{"width":64,"durationMs":500,"fps":2}`, glasses.TypeVideoStart: `{"width":64,"fps":2}`} {
				b.out = nil
				b.do(command, payload)
				b.wait(1000)
				found := false
				for _, out := range b.out {
					if out.Frame.Type != glasses.TypeMedia && out.Frame.Type != glasses.TypeVideoFrame {
						continue
					}
					found = true
					var m glasses.Media
					_ = json.Unmarshal(out.Frame.Payload, &m)
					img, err := jpeg.Decode(bytes.NewReader(out.Body))
					if err == nil {
						err = exiftest.CheckUpright(img, img.Bounds())
					}
					if err != nil || m.Width != exiftest.Width || bytes.Contains(out.Body, []byte(exiftest.Place)) {
						t.Errorf("orientation %d, %s, width %d: error %v, or metadata", o, command, m.Width, err)
					}
				}
				if !found {
					t.Errorf("orientation %d: no picture of %s", o, command)
				}
			}
		}
	}
}
