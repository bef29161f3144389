//go:build !unix

package descriptors

func exhaustion() error { return wsaEMFILE }
