// Package credentials has the registry credentials that a node is configured with, as its kubelet has them: the exec
// plugins of a CredentialProviderConfig, and docker's configuration files.
//
//	keyring, err := credentials.Open(credentials.Options{
//		Config: "/kruise/CredentialProviderPlugin.yaml", Plugins: "/kruise/plugins",
//		DockerDirs: []string{"/", "/root/.docker"},
//		Env: os.Environ(),
//	})
//	...
//	found, err := keyring.Lookup(ctx, "registry.example.com/team/app")
//
// # What holds
//
//   - Lookup gives what it finds also when it returns an error: one plugin that fails, or a file that cannot be read,
//     takes nothing from the others.
//   - A plugin is run only for repositories that it is configured for, once at a time for each, and not again as long
//     as it said that its answer holds. An answer that holds for no time is not kept.
//   - Files are read each time: they are small, and a rotated password works at once.
//   - Errors name the plugin and what it printed to its standard error. They do not have what it printed to its
//     standard output, nor anything from a file, where credentials are.
//
// Plugins that want tokens of service accounts are refused: there is no pod that such a token could be of.
//
// # When not to use it
//
// For pull secrets of the API: a Keyring of the package imagepull at the root of this module reads these.
package credentials
