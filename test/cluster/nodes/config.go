package nodes

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// Config says where a cluster lives and what it consists of.
type Config struct {
	// Dir holds all state. It is removed by Down.
	Dir string
	// Programs are the paths of the programs by name.
	Programs map[string]string
	// Network defaults to that of DefaultNetwork.
	Network Network
}

// Network is all that a cluster takes of the machine's names and addresses.
type Network struct {
	// Bridge is the network interface that connects the nodes; those of the nodes have its name and a number.
	Bridge string
	// Host is the address of the machine on the bridge, and Node the address of each node but for its number.
	Host, Node string
	// Bits is the length of their network prefix.
	Bits int
	// Pods is the /24 of each node's pods, with %d for its number.
	Pods string
	// API is the address of the API server: that of the kubernetes Service.
	API string
	// Registry is the port of the registry on Host.
	Registry int
	// Nodes is how many there are.
	Nodes int
	// Cgroup is the name of each node's cgroup but for its number.
	Cgroup string
}

// DefaultNetwork keeps clear of what clouds, container engines and other local clusters use by default.
func DefaultNetwork() Network {
	return Network{
		Bridge: "kruisekit", Host: "10.245.0.1", Node: "10.245.0.1%d", Bits: 24, Pods: "10.244.%d.0/24",
		API: "10.96.0.1", Registry: 5000, Nodes: 3, Cgroup: "kruisekit-%d",
	}
}

func (n Network) nodeIP(node int) string     { return fmt.Sprintf(n.Node, node) }
func (n Network) podRange(node int) string   { return fmt.Sprintf(n.Pods, node) }
func (n Network) cgroup(node int) string     { return fmt.Sprintf(n.Cgroup, node) }
func (n Network) link(node int) string       { return n.Bridge + strconv.Itoa(node) }
func (n Network) mask(address string) string { return address + "/" + strconv.Itoa(n.Bits) }

// RegistryURL is where images are pushed to.
func (n Network) RegistryURL() string { return fmt.Sprintf("http://%s:%d", n.Host, n.Registry) }

// Name of a node, the first being 1.
func Name(node int) string { return "node-" + strconv.Itoa(node) }

// marker is in the environment of all programs of the cluster, for finding those whose records were lost.
func (c Config) marker() string { return "KRUISEKIT_CLUSTER=" + c.Dir }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c Config) Kubeconfig() string { return filepath.Join(c.planeDir(), "kubeconfig") }

func (c Config) planeDir() string { return filepath.Join(c.Dir, "plane") }
func (c Config) records() string  { return filepath.Join(c.Dir, "run") }

// borrowed lies beside the state directory: it is needed also when a user has removed that one.
func (c Config) borrowed() string { return filepath.Clean(c.Dir) + ".borrowed.json" }

func (c Config) recordDirs() []string {
	return []string{c.records(), plane.RecordDir(c.planeDir())}
}

// inNode is the path on the machine of a path below a node's own /run, /var/lib or /var/log.
func (c Config) inNode(node int, path string) string { return filepath.Join(c.Dir, Name(node), path) }
