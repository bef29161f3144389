//go:build !js

package main

import _ "github.com/service-dev/service/proto/glasses/render/fonts/packs"
