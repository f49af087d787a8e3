package daemonset_test

import "errors"

var errWait = errors.New("not yet")
