package connpage

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Surface colours behind the accent, and the required contrast (WCAG 2.2, 1.4.3).
const (
	lightSurface = rgb(0xffffff)
	darkSurface  = rgb(0x191d1f)
	inkOnLight   = rgb(0x0b0d0e)
	inkOnDark    = rgb(0xffffff)
	contrastText = 4.6
)

type rgb uint32

func (c rgb) String() string { return fmt.Sprintf("#%06x", uint32(c)) }

// colours returns CSS variables for both themes. The accent is moved towards black or white until it is readable on
// the theme's surface. The text on the accent has the most readable colour. Every accent is therefore readable in
// both themes.
func colours(accent string) string {
	if !IsColour(accent) { // stored pages were validated, but a Page created in code may have any accent
		accent = defaultAccent
	}
	n, _ := strconv.ParseUint(accent[1:], 16, 24) // the form allows only hexadecimal digits
	light, dark := readable(rgb(n), lightSurface, 0), readable(rgb(n), darkSurface, 0xffffff)
	return fmt.Sprintf(":root{--accent-light:%s;--on-light:%s;--accent-dark:%s;--on-dark:%s}\n", light, textOn(light),
		dark, textOn(dark))
}

// IsColour reports whether a page can have the accent. It accepts upper and lower case.
func IsColour(accent string) bool { return accentForm.MatchString(strings.ToLower(accent)) }

// readable mixes c with towards in steps until its contrast with surface is sufficient.
func readable(c, surface, towards rgb) rgb {
	for step := 0; step < 50; step++ {
		if mixed := mix(c, towards, float64(step)/50); contrast(mixed, surface) >= contrastText {
			return mixed
		}
	}
	return towards
}

func textOn(c rgb) rgb {
	if contrast(inkOnDark, c) >= contrast(inkOnLight, c) {
		return inkOnDark
	}
	return inkOnLight
}

func mix(a, b rgb, share float64) rgb {
	var out rgb
	for shift := 0; shift <= 16; shift += 8 {
		x, y := float64(a>>shift&0xff), float64(b>>shift&0xff)
		out |= rgb(math.Round(x+(y-x)*share)) << shift
	}
	return out
}

// contrast returns the WCAG contrast ratio, from 1 to 21.
func contrast(a, b rgb) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

func luminance(c rgb) float64 {
	part := func(shift int) float64 {
		v := float64(c>>shift&0xff) / 255
		if v <= .04045 {
			return v / 12.92
		}
		return math.Pow((v+.055)/1.055, 2.4)
	}
	return .2126*part(16) + .7152*part(8) + .0722*part(0)
}
