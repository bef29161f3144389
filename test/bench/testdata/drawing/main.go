// Command drawing prints how many nanoseconds a picture takes on a device model: the median for a typical display
// tree. A second argument changes that: "png" also encodes the picture, "han" draws Chinese text, and "first=TEXT"
// measures the first picture of a text. It is built natively and as WebAssembly.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

const tree = `{"tree":{"type":"column","padding":12,"gap":8,"children":[
 {"type":"row","gap":8,"children":[{"type":"icon","icon":"battery"},{"type":"text","text":"Desk assistant","style":"title","grow":1}]},
 {"type":"text","text":"Three things are left for today. The next one starts in ten minutes, at the other end of the building."},
 {"type":"progress","value":40},
 {"type":"list","gap":4,"children":[{"type":"text","id":"a","text":"Call the workshop"},{"type":"text","id":"b","text":"Pick up the parcel"},{"type":"text","id":"c","text":"Water the plants"}]},
 {"type":"row","gap":8,"children":[{"type":"button","id":"next","text":"Next"},{"type":"button","id":"later","text":"Later"}]}]}}`

// han has as many words as tree. %s is text that differs from picture to picture, as subtitles do.
const han = `{"tree":{"type":"column","padding":12,"gap":8,"children":[
 {"type":"row","gap":8,"children":[{"type":"icon","icon":"battery"},
  {"type":"text","text":"桌面助手","style":"title","grow":1}]},
 {"type":"text","text":"%s今天还有三件事要做。下一件十分钟后开始，在大楼的另一头。"},
 {"type":"progress","value":40},
 {"type":"list","gap":4,"children":[{"type":"text","id":"a","text":"给修理店打电话"},
  {"type":"text","id":"b","text":"取包裹"},{"type":"text","id":"c","text":"给植物浇水"}]},
 {"type":"row","gap":8,"children":[{"type":"button","id":"next","text":"下一步"},
  {"type":"button","id":"later","text":"稍后"}]}]}}`

func main() {
	id := "rayban_display"
	if len(os.Args) > 1 {
		id = os.Args[1]
	}
	model, _ := glasses.Model(id)
	argument := ""
	if len(os.Args) > 2 {
		argument = os.Args[2]
	}
	if text, ok := strings.CutPrefix(argument, "first="); ok {
		fmt.Println(first(model, text).Nanoseconds())
		return
	}
	var times []time.Duration
	for n := range 60 {
		drawn := tree
		if argument == "han" {
			drawn = fmt.Sprintf(han, string(rune(0x4e00+n)))
		}
		view := view(model, drawn)
		start := time.Now()
		picture := render.Draw(model, view)
		if argument == "png" {
			render.PNG(picture)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	fmt.Println(times[len(times)/2].Nanoseconds())
}

// first returns the time that the first picture with a text takes, after a picture with a text of another script.
func first(model glasses.DeviceModel, text string) time.Duration {
	render.Draw(model, view(model, tree))
	start := time.Now()
	render.Draw(model, view(model, `{"tree":{"type":"text","text":"`+text+`"}}`)) // the view is laid out, too
	return time.Since(start)
}

func view(model glasses.DeviceModel, tree string) glasses.View {
	show, err := glasses.ParseShow([]byte(tree))
	if err != nil {
		panic(err)
	}
	return render.Clamp(model, glasses.View{Tree: &show.Tree})
}
