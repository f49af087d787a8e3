package plane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are chosen below the range from which systems take the ports of outgoing connections, which would otherwise get
// in the way between choice and use; and at random, because several processes choose at once.
const firstPort, lastPort, portTries = 14000, 29999, 100

// FreePort finds a free port at 127.0.0.1.
func FreePort() (int, error) {
	var last error
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)) //nolint:noctx // returns at once
		if err != nil {
			last = err
			continue
		}
		return port, errors.Join(listener.Close())
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}
