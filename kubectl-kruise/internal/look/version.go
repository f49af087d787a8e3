package look

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"
)

// versions are what the command version prints.
type versions struct {
	Client string           `json:"clientVersion"`
	Server *apiversion.Info `json:"serverVersion,omitempty"`
}

// NewVersion returns the command version. The version of the client is that of the root command, which is no version of
// Kubernetes, so that kubectl's check of the skew does not apply.
func NewVersion(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var client bool
	var output string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the versions of the client and of the server", Args: cobra.NoArgs,
		Example: "  kubectl kruise version --client",
	}
	cmd.Flags().BoolVar(&client, "client", false, "Print the version of the client alone: the server is not asked")
	cmd.Flags().StringVarP(&output, "output", "o", "", "One of 'yaml' or 'json'")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions{Client: cmd.Root().Version}
		var failed error
		if !client {
			discovery, err := f.ToDiscoveryClient()
			if err != nil {
				return err
			}
			v.Server, failed = discovery.ServerVersion()
		}
		if err := v.print(streams, output); err != nil {
			return err
		}
		return failed
	}
	return cmd
}

func (v versions) print(streams genericiooptions.IOStreams, output string) error {
	var text []byte
	var err error
	switch output {
	case "":
		text = fmt.Appendf(nil, "Client Version: %s\n", v.Client)
		if v.Server != nil {
			text = fmt.Appendf(text, "Server Version: %s\n", v.Server.GitVersion)
		}
	case "json":
		if text, err = json.MarshalIndent(v, "", "  "); err == nil {
			text = append(text, '\n')
		}
	case "yaml":
		text, err = yaml.Marshal(v)
	default:
		err = fmt.Errorf("--output must be 'yaml' or 'json'")
	}
	if err != nil {
		return err
	}
	_, err = streams.Out.Write(text)
	return err
}
