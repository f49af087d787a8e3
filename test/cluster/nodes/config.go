package nodes

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// Config says where a cluster lives and what it consists of.
type Config struct {
	// Dir holds all state. It is removed by Down.
	Dir string
	// Programs are the paths of the programs by name.
	Programs map[string]string
}

// OfMachine is the configuration of the machine's one cluster. Without its programs, which the error is about, the
// cluster can still be stopped.
func OfMachine(c binaries.Cache) (Config, error) {
	programs, err := c.Paths(binaries.Nodes)
	return Config{Dir: c.State("real"), Programs: programs}, err
}

// What a cluster takes of the machine's names and addresses keeps clear of what clouds, container engines and other
// local clusters use by default.
const (
	// Count is how many nodes there are.
	Count = 3
	// Host is the address of the machine on the bridge that connects the nodes.
	Host = "10.245.0.1"
	// bridge is the network interface; those of the nodes have its name and a number.
	bridge = "kruisekit"
	// api is the address of the API server: that of the kubernetes Service.
	api             = "10.96.0.1"
	registryAddress = Host + ":5000"
	// RegistryURL is where images are pushed to.
	RegistryURL = "http://" + registryAddress
)

func nodeIP(node int) string     { return fmt.Sprintf("10.245.0.1%d", node) }
func podRange(node int) string   { return fmt.Sprintf("10.244.%d.0/24", node) }
func cgroup(node int) string     { return fmt.Sprintf("kruisekit-%d", node) }
func link(node int) string       { return bridge + strconv.Itoa(node) }
func mask(address string) string { return address + "/24" }

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
