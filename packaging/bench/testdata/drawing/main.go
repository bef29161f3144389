// Command drawing repeatedly draws a typical display tree on a device model and prints the nanoseconds per picture.
// With a second argument it also encodes the picture as PNG. It is built natively and as WebAssembly.
package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
)

const tree = `{"tree":{"type":"column","padding":12,"gap":8,"children":[
 {"type":"row","gap":8,"children":[{"type":"icon","icon":"battery"},{"type":"text","text":"Desk assistant","style":"title","grow":1}]},
 {"type":"text","text":"Three things are left for today. The next one starts in ten minutes, at the other end of the building."},
 {"type":"progress","value":40},
 {"type":"list","gap":4,"children":[{"type":"text","id":"a","text":"Call the workshop"},{"type":"text","id":"b","text":"Pick up the parcel"},{"type":"text","id":"c","text":"Water the plants"}]},
 {"type":"row","gap":8,"children":[{"type":"button","id":"next","text":"Next"},{"type":"button","id":"later","text":"Later"}]}]}}`

func main() {
	id := "rayban_display"
	if len(os.Args) > 1 {
		id = os.Args[1]
	}
	model, _ := glasses.Model(id)
	show, err := glasses.ParseShow([]byte(tree))
	if err != nil {
		panic(err)
	}
	view := render.Clamp(model, glasses.View{Tree: &show.Tree})
	var times []time.Duration
	for range 60 {
		start := time.Now()
		picture := render.Draw(model, view)
		if len(os.Args) > 2 {
			render.PNG(picture)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	fmt.Println(times[len(times)/2].Nanoseconds())
}
