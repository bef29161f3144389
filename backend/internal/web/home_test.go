package web

import (
	"bytes"
	"flag"
	"image"
	"image/draw"
	"image/png"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// homeTree is the tree shown by the glasses on the start page.
const homeTree = `{"tree":{"type":"column","padding":28,"gap":16,"children":[
	{"type":"row","gap":12,"align":"center","children":[{"type":"icon","icon":"clock","colour":"#62cfc4"},
		{"type":"text","text":"Step 3 of 5","style":"caption","colour":"#a3abae","grow":1},
		{"type":"text","text":"04:12","style":"caption","colour":"#62cfc4"}]},
	{"type":"text","text":"Fold the dough","style":"title"},
	{"type":"text","text":"Stretch each side over the middle. Turn the bowl, and repeat four times."},
	{"type":"progress","value":60},{"type":"column","grow":1,"children":[]},
	{"type":"row","gap":12,"children":[{"type":"button","id":"next","text":"Next step"},
		{"type":"button","id":"repeat","text":"Repeat"}]}]}}`

var update = flag.Bool("update", false, "draw the picture of the start page again")

// TestHome_PictureIsOfTheRenderer draws the picture again and compares pixels.
func TestHome_PictureIsOfTheRenderer(t *testing.T) {
	show, err := glasses.ParseShow([]byte(homeTree))
	if err != nil {
		t.Fatal(err)
	}
	model, _ := glasses.Model("rayban_display")
	picture := render.Draw(model, render.Show(model, glasses.View{}, &show.Tree))
	if found := render.Fit(model, render.Show(model, glasses.View{}, &show.Tree)); len(found) > 0 {
		t.Errorf("the tree does not fit: %v", found)
	}
	const file = "assets/home.png"
	if *update {
		if err := os.WriteFile(file, render.PNG(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain := image.NewNRGBA(got.Bounds())
	draw.Draw(plain, plain.Rect, got, image.Point{}, draw.Src)
	if !bytes.Equal(plain.Pix, picture.Pix) || len(data) > 30_000 {
		t.Errorf("%s (%d bytes) is not what the renderer draws, or is large; run this test with -update", file, len(data))
	}
}

// An embedded backend of another state directory is found only with that directory.
func TestHome_CommandsNameTheStateDirectory(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h, func(o *Options) { o.Embedded, o.StateDir = true, "/home/ada/o'hara/.run" })
	const export = "export SERVICE_CONFIG_DIR=&#39;/home/ada/o&#39;\\&#39;&#39;hara/.run&#39;\nservicectl agent add --all"
	visit(t, site).get("/").want(http.StatusOK, strings.Replace(export, "=", "=<wbr>", 1))
	v := signedIn(t, site, "eve@example.org").get("/account").want(http.StatusOK, export)
	if strings.Contains(v.page, "by themselves") || strings.Contains(v.page, "SERVICE_BACKEND_URL") {
		t.Error("the first steps lead to another backend")
	}
	site = dashboardSite(t, h, func(o *Options) { o.Embedded = true })
	signedIn(t, site, "eve@example.org").get("/account").want(http.StatusOK, "by themselves", "<code>servicectl agent add --all")
}

// The commands on the start page fit the backend: the address of an embedded backend must not be set, because the tools
// would treat it as another one.
func TestHome_CommandsFitTheBackend(t *testing.T) {
	for _, embedded := range []bool{true, false} {
		site := newSite(t, newPeople(t), func(o *Options) { o.Embedded, o.SiteURL = embedded, "http://service.example.org" })
		v := visit(t, site).get("/").want(http.StatusOK, "servicectl agent add --all", "servicectl login",
			"servicectl session run", "home.png")
		if got := strings.Contains(v.page, "export SERVICE_BACKEND_URL=<wbr>http://service.example.org"); got == embedded {
			t.Errorf("embedded %v: the page sets the address: %v", embedded, got)
		}
	}
}
