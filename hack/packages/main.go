// Packages installs the packages of the system that are missing, as root on Debian or Ubuntu. Elsewhere one line names
// them.
//
//	go run ./hack/packages tests   what tests and checks need; fails only with KRUISEKIT_REQUIRE_CLUSTER=1
//	go run ./hack/packages nodes   what real nodes need; fails where these cannot run
//
// It imports the standard library and the list alone, so that the answer comes before anything else is downloaded or
// compiled.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

func main() {
	ctx, purpose := context.Background(), ""
	if len(os.Args) == 2 {
		purpose = os.Args[1]
	}
	switch purpose {
	case "tests":
		absent := packages.Prepare(ctx, os.Stdout, packages.All())
		if len(absent) == 0 {
			return
		}
		fmt.Println(packages.Advice(absent))
		if os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") == "1" {
			os.Exit(1)
		}
	case "nodes":
		if err := packages.PrepareNodes(ctx, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: packages tests|nodes")
		os.Exit(2)
	}
}
