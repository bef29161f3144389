module github.com/service-dev/service/packaging/release

go 1.26.0

require aead.dev/minisign v0.3.0

require (
	golang.org/x/crypto v0.13.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
