//go:build linux

package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// connect makes the bridge, whose addresses are those of the machine for the nodes and of the API server.
func connect(ctx context.Context) error {
	if err := setSysctl("net/ipv4/ip_forward", "1"); err != nil {
		return err
	}
	err := executeAll(ctx,
		[]string{"ip", "link", "add", bridge, "type", "bridge"},
		[]string{"ip", "addr", "add", mask(Host), "dev", bridge},
		[]string{"ip", "addr", "add", api + "/32", "dev", bridge},
		[]string{"ip", "link", "set", bridge, "up"},
	)
	if err != nil {
		return fmt.Errorf("make the bridge: %w", err)
	}
	policy, err := execute(ctx, "iptables", "-S", "FORWARD")
	if err != nil {
		return err
	}
	if !strings.Contains(policy, "-P FORWARD DROP") {
		return nil
	}
	// Container engines drop by default what they do not know, also between ports of a bridge.
	for _, rule := range rules() {
		if _, err := execute(ctx, "iptables", append([]string{"-I", "FORWARD"}, rule...)...); err != nil {
			return err
		}
	}
	return nil
}

func rules() [][]string {
	return [][]string{{"-i", bridge, "-j", "ACCEPT"}, {"-o", bridge, "-j", "ACCEPT"}}
}

// join connects the network namespace of a node's first process to the bridge, and routes its pods' addresses to it.
func join(ctx context.Context, node, pid int) error {
	inside := func(command ...string) []string {
		return append([]string{"nsenter", "--target", strconv.Itoa(pid), "--net", "--"}, command...)
	}
	veth, address := link(node), nodeIP(node)
	commands := [][]string{
		// Always the same hardware address: the machine and the other nodes find a node that has restarted at once.
		{
			"ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "address",
			fmt.Sprintf("02:00:00:00:00:%02x", node), "netns", strconv.Itoa(pid),
		},
		{"ip", "link", "set", veth, "master", bridge, "up"},
		inside("ip", "link", "set", "lo", "up"),
		inside("ip", "addr", "add", mask(address), "dev", "eth0"),
		inside("ip", "link", "set", "eth0", "up"),
		inside("ip", "route", "add", "default", "via", Host),
		// The namespace of the reader decides which network's sysctls these are.
		inside("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"),
		{"ip", "route", "replace", podRange(node), "via", address},
	}
	for other := 1; other <= Count; other++ {
		if other != node {
			commands = append(commands, inside("ip", "route", "add", podRange(other), "via", nodeIP(other)))
		}
	}
	if err := executeAll(ctx, commands...); err != nil {
		return fmt.Errorf("connect %s: %w", Name(node), err)
	}
	return nil
}

// disconnect removes what connect and join have made on the machine, as far as it is there. Routes go with the bridge.
func disconnect(ctx context.Context) error {
	links := []string{bridge}
	for node := 1; node <= Count; node++ {
		links = append(links, link(node))
	}
	for _, link := range links {
		if err := removeLink(ctx, link); err != nil {
			return err
		}
	}
	if err := heal(ctx); err != nil {
		return err
	}
	for _, rule := range rules() {
		for {
			if _, err := execute(ctx, "iptables", append([]string{"-C", "FORWARD"}, rule...)...); err != nil {
				break // there is none, or no more, or no iptables
			}
			if _, err := execute(ctx, "iptables", append([]string{"-D", "FORWARD"}, rule...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeLink removes a link, also one that the kernel is about to remove: that of a node that has ended.
func removeLink(ctx context.Context, link string) error {
	if _, err := execute(ctx, "ip", "link", "del", link); err != nil && exists(link) {
		return err
	}
	return nil
}

func exists(link string) bool {
	_, err := os.Stat(filepath.Join("/sys/class/net", link))
	return err == nil
}
