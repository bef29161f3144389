//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// container is the server in its unpacked image. Bubblewrap runs it as a container runtime would: as the image's user
// and as process 1, with a read-only root and a private network that has only loopback.
type container struct {
	t      *testing.T
	cmd    *exec.Cmd
	pid    int // of the server, as seen from outside
	log    *bytes.Buffer
	exited chan struct{}
}

// startContainer runs the image in rootfs. mounts holds pairs of a file or directory and its path in the container.
func startContainer(t *testing.T, rootfs, data string, env []string, mounts ...string) *container {
	t.Helper()
	args := []string{
		"--unshare-all", "--as-pid-1", "--die-with-parent", "--info-fd", "3", "--clearenv", "--ro-bind", rootfs, "/",
		"--proc", "/proc", "--dev", "/dev", "--bind", data, "/" + imageData, "--chdir", "/" + imageData,
	}
	for i := 0; i < len(mounts); i += 2 {
		args = append(args, "--ro-bind", mounts[i], mounts[i+1])
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		args = append(args, "--setenv", name, value)
	}
	args = append(args, "/"+imageProgram, "--config", "/"+imageConfig)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c := &container{t: t, cmd: exec.Command("bwrap", args...), log: &bytes.Buffer{}, exited: make(chan struct{})}
	c.cmd.ExtraFiles, c.cmd.Stdout, c.cmd.Stderr = []*os.File{write}, c.log, c.log
	c.cmd.Dir = "/"
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	started := make(chan error, 1)
	go func() {
		// --die-with-parent ends the container when the thread that started it exits, so that must not be a thread
		// used by inside.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- c.cmd.Start()
		_ = c.cmd.Wait()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(c.kill)
	var info struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(read).Decode(&info); err != nil || info.Child == 0 {
		c.kill()
		t.Fatalf("bwrap reports no child: %v\n%s", err, c.log)
	}
	c.pid = info.Child
	return c
}

// kill ends the container. Its log can be read afterwards.
func (c *container) kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// inside calls f on a thread in the container's network.
func (c *container) inside(f func() error) error {
	result := make(chan error, 1)
	go func() {
		// The thread stays locked, so that it ends with the goroutine instead of running others in that network.
		runtime.LockOSThread()
		result <- func() error {
			namespace, err := os.Open("/proc/" + strconv.Itoa(c.pid) + "/ns/net")
			if err != nil {
				return err
			}
			defer namespace.Close()
			if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return f()
		}()
	}()
	return <-result
}

// dial connects to the server.
func (c *container) dial() (conn net.Conn, err error) {
	err = c.inside(func() error {
		conn, err = net.Dial("tcp", "127.0.0.1:8080")
		return err
	})
	return conn, err
}

// listen opens a listener in the container's network.
func (c *container) listen(address string) (l net.Listener, err error) {
	err = c.inside(func() error {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

// client returns an HTTP client in the container's network, which follows no redirects.
func (c *container) client() *http.Client {
	dial := func(context.Context, string, string) (net.Conn, error) { return c.dial() }
	return &http.Client{
		Transport:     &http.Transport{DialContext: dial},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// waitHealthy returns the answer of the health check once the server is running.
func (c *container) waitHealthy() string {
	c.t.Helper()
	for {
		select {
		case <-c.exited:
			c.t.Fatalf("the server ended:\n%s", c.log)
		case <-c.t.Context().Done():
			c.t.Fatal("the server does not answer")
		case <-time.After(20 * time.Millisecond):
		}
		response, err := c.client().Get("http://localhost:8080/api/health")
		if err != nil {
			continue
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return string(body)
		}
	}
}

// unpackImage uses skopeo and umoci to unpack one platform of the image from a registry, and adds the mount points of
// container runtimes.
func unpackImage(t *testing.T, from string) (rootfs string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "image-") // unlike in t.TempDir, the container's user may enter its parents
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, "skopeo", "copy", "-q", "--src-tls-verify=false", "--override-os=linux", "--override-arch=amd64", from,
		"oci:"+dir+"/oci:image")
	output(t, "umoci", "unpack", "--image", dir+"/oci:image", dir+"/bundle")
	if err := os.Chmod(dir+"/bundle", 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "bundle", "rootfs")
}

// addMountPoints creates the mount points of container runtimes in a root.
func addMountPoints(t *testing.T, rootfs string) {
	t.Helper()
	for _, place := range []string{"proc", "dev", "run/secrets"} {
		if err := os.MkdirAll(filepath.Join(rootfs, place), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
