//go:build unix

// Command handover is a sidecar that can be upgraded hot: a proxy before an application of the same pod, which a newer
// one takes over from without a connection that is refused or cut. It shows what a SidecarSet asks of the author of an
// image whose upgradeType is HotUpgrade.
//
//	handover serve --listen=:8080 --to=http://127.0.0.1:80   # the image
//	handover idle                                            # the image of hotUpgradeEmptyImage
//	handover migrate                                         # postStart hook of both
//
// The pod has two containers of this sidecar, one at work and one that idles. To upgrade, the one that idles is started
// with the new image. It takes the listener itself from the one at work, through a socket in a volume that both mount:
// from then on both accept connections of one queue, so that none is lost when the older is stopped, which ends what it
// has begun. The hook reports to the kubelet, and so to the controller, when the newer has taken over; only then the
// older is made to idle.
//
// Each knows its part from its environment: SIDECARSET_VERSION is 0 for the one that idles, and grows with each
// upgrade.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience is how long the other may take.
const patience = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv("SIDECARSET_VERSION")); err != nil {
		fmt.Fprintln(os.Stderr, "handover:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, version string) error {
	if len(args) == 0 {
		return errors.New("want serve, idle or migrate")
	}
	var o options
	if err := o.parse(args); err != nil {
		return err
	}
	switch args[0] {
	case "serve":
		return serve(ctx, o, version)
	case "idle":
		<-ctx.Done()
		return nil
	case "migrate":
		return migrate(ctx, o.socket, version)
	default:
		return fmt.Errorf("want serve, idle or migrate, not %q", args[0])
	}
}

type options struct{ listen, to, socket string }

func (o *options) parse(args []string) error {
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what is wrong is in the error
	flags.StringVar(&o.listen, "listen", ":8080", "where to listen, if no process has a listener to take over")
	flags.StringVar(&o.to, "to", "http://127.0.0.1:80", "the application")
	flags.StringVar(&o.socket, "socket", "/run/handover/listener", "where the one at work gives its listener away")
	return flags.Parse(args[1:])
}

// migrate waits until the process of this version has the listener. One that idles has none to wait for.
func migrate(ctx context.Context, path, version string) error {
	if version == "0" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		listener, holder, err := take(ctx, path)
		if err == nil {
			_ = listener.Close() // ours of the two handles
			if holder == version {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("version %s does not serve: %w", version, errors.Join(err, ctx.Err()))
		case <-again.C:
		}
	}
}
