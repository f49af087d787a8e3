//go:build !linux

package cri

import "errors"

func statfs(string) (space Space, overlay bool, err error) {
	return Space{}, false, errors.ErrUnsupported
}
