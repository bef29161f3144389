//go:build !js

package main

import _ "github.com/service-dev/service/glasses/render/fonts/packs"
