//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// take gets the listener of the process at work, and its version. Both processes may use it then.
func take(ctx context.Context, path string) (net.Listener, string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, "", fmt.Errorf("ask for the listener: %w", err)
	}
	defer func() { _ = conn.Close() }()
	from, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, "", fmt.Errorf("ask for the listener: %s has no files to give", conn.RemoteAddr().Network())
	}
	version, rights := make([]byte, 64), make([]byte, syscall.CmsgSpace(4))
	n, nrights, _, _, err := from.ReadMsgUnix(version, rights)
	if err != nil {
		return nil, "", fmt.Errorf("receive the listener: %w", err)
	}
	file, err := fileOf(rights[:nrights])
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = file.Close() }()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, "", fmt.Errorf("use the listener: %w", err)
	}
	return listener, string(version[:n]), nil
}

// fileOf is the one file that came along with a message.
func fileOf(rights []byte) (*os.File, error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, fmt.Errorf("receive the listener: %w", err)
	}
	if len(messages) != 1 {
		return nil, errors.New("receive the listener: it did not come along")
	}
	files, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("receive the listener: %d files: %w", len(files), err)
	}
	return os.NewFile(uintptr(files[0]), "listener"), nil
}

// give offers the listener to a process that asks, until the context ends. It replaces an earlier offer.
func give(ctx context.Context, path, version string, listener *net.TCPListener) error {
	// File and Fd would make accepting block, for all who have the listener.
	handle, err := listener.SyscallConn()
	if err != nil {
		return fmt.Errorf("offer the listener: %w", err)
	}
	own := path + "." + version
	//nolint:gosec // of a process before this one, named by the controller
	if err := os.Remove(own); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	offers, err := net.ListenUnix("unix", &net.UnixAddr{Name: own, Net: "unix"})
	if err != nil {
		return fmt.Errorf("offer the listener: %w", err)
	}
	offers.SetUnlinkOnClose(false) // it gets another name, which may be another's by then
	context.AfterFunc(ctx, func() { _ = offers.Close() })
	go func() {
		for {
			conn, err := offers.AcceptUnix()
			if err != nil {
				return
			}
			// A process that does not get it asks again.
			_ = handle.Control(func(fd uintptr) {
				_, _, _ = conn.WriteMsgUnix([]byte(version), syscall.UnixRights(int(fd)), nil)
			})
			_ = conn.Close()
		}
	}()
	if err := os.Rename(own, path); err != nil { //nolint:gosec // named by the controller
		return fmt.Errorf("offer the listener: %w", err)
	}
	return nil
}
