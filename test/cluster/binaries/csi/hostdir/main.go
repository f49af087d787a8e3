// Command hostdir is a CSI driver whose volumes are directories of the machine, and which records how large they are.
// It provisions, mounts and expands volumes: the controller first, and then the node, as drivers with a file system do.
//
// The kubelet finds the driver by its plugin watcher: hostdir serves the registration itself, and needs no
// node-driver-registrar.
//
// When not to use it: with nodes that share no directory. It enforces no size.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hostdir:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("hostdir", flag.ContinueOnError)
	name := flags.String("name", "hostdir.csi.test.kruisekit.dev", "name of the driver")
	dir := flags.String("dir", "", "directory of the volumes, the same on all nodes")
	socket := flags.String("socket", "", "path of the socket to serve")
	node := flags.String("node", "", "name of the node")
	register := flags.String("register", "",
		"path of a socket below the kubelet's plugins_registry; empty does not register")
	kubelet := flags.String("kubelet-socket", "", "path at which the kubelet finds the socket")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" || *socket == "" {
		return errors.New("-dir and -socket are required")
	}
	volumes := store{dir: *dir}
	driver := grpc.NewServer()
	csi.RegisterIdentityServer(driver, &identityServer{name: *name})
	csi.RegisterControllerServer(driver, &controllerServer{volumes: volumes})
	csi.RegisterNodeServer(driver, &nodeServer{name: *node, volumes: volumes})
	servers := map[string]*grpc.Server{*socket: driver}
	if *register != "" {
		r := grpc.NewServer()
		registration.RegisterRegistrationServer(r, &registrationServer{name: *name, socket: *kubelet})
		servers[*register] = r
	}
	ended := make(chan error, len(servers))
	for path, server := range servers {
		listener, err := listen(path)
		if err != nil {
			return err
		}
		go func() { ended <- server.Serve(listener) }()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	for _, server := range servers {
		server.Stop() // which removes the socket: the kubelet forgets the driver
	}
	return nil
}

// listen serves a socket, also where an earlier process has left one.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return net.Listen("unix", path)
}
