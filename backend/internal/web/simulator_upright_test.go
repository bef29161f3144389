package web

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"image/jpeg"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media/exiftest"
)

// A picture that a phone stored sideways is upright in each place: as a file for the camera, which the browser decodes;
// as an agent's picture for the camera; and on the panel, where it looks like an img element.
func TestSimulatorPage_ShowsPicturesUpright(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	wantUpright := func(what string) {
		t.Helper()
		id := s.command(glasses.TypeCameraPhoto, glasses.Photo{Width: exiftest.Width})
		if r := s.result(id); !r.OK {
			t.Fatalf("%s: %+v", what, r.Error)
		}
		body := s.next(glasses.TypeMedia, id).body
		img, err := jpeg.Decode(bytes.NewReader(body))
		if err == nil {
			err = exiftest.CheckUpright(img, img.Bounds())
		}
		if err != nil || bytes.Contains(body, []byte("Exif\x00")) {
			t.Errorf("%s: error %v, or metadata", what, err)
		}
	}
	s.do(chromedp.Click("#tab-senses"), chromedp.Click(`[name="camera-source"][value="file"]`))
	for o := 1; o <= 8; o++ {
		for kind, picture := range map[string][]byte{"jpg": exiftest.JPEG(binary.BigEndian, o),
			"png": exiftest.PNG(binary.LittleEndian, o)} {
			what := kind + "-" + strconv.Itoa(o)
			file := filepath.Join(t.TempDir(), what+"."+kind)
			if err := os.WriteFile(file, picture, 0o600); err != nil {
				t.Fatal(err)
			}
			s.do(chromedp.Evaluate[chromedp.Void](`{ const still = document.querySelector("#camera-still"); still.width = 1; }`),
				chromedp.SetUploadFiles("#camera-file", []string{file}))
			s.see(`document.querySelector("#camera-still").width > 1`)
			wantUpright("a chosen file, " + what)

			s.sendBinary(glasses.SimCamera, "ctl-"+what, picture)
			s.result("ctl-" + what)
			wantUpright("an agent's picture, " + what)
			s.send(glasses.SimCamera, "ctl-none-"+what, struct{}{})
			s.result("ctl-none-" + what)

			tree, _ := json.Marshal(glasses.Show{Tree: glasses.Node{Type: glasses.NodeImage, Alt: what,
				Data: base64.StdEncoding.EncodeToString(picture)}})
			s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(tree)))
			s.wantPixels("rayban_display", glasses.View{Tree: treeOf(t, string(tree)), Focus: -1})
		}
	}
}
