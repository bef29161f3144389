// Package main draws the views that it reads from standard input and prints the SHA-256 of the pixels of each
// picture.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	_ "github.com/service-dev/service/glasses/render/fonts/packs"
)

func main() {
	var cases []struct {
		Model glasses.DeviceModel
		View  glasses.View
	}
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, c := range cases {
		fmt.Printf("%x\n", sha256.Sum256(render.Draw(c.Model, c.View).Pix))
	}
}
