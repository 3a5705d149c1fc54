package main

import (
	"fmt"

	"github.com/alecthomas/kong"
	mangokong "github.com/alecthomas/mango-kong"
	"github.com/muesli/roff"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// completionCommand is 'shoal completion'.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help returns the command's help text.
func (*completionCommand) Help() string {
	return `The shell calls shoal for completions, so shoal must be on PATH.

Examples:

  source <(shoal completion bash)                                   in ~/.bashrc
  source <(shoal completion zsh)                                    in ~/.zshrc
  shoal completion fish > ~/.config/fish/completions/shoal.fish`
}

// Run prints the shell's lines.
func (c *completionCommand) Run(t *terminal.Terminal) error {
	text := map[string]string{
		"bash": "complete -o default -C shoal shoal\n",
		"zsh": "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
			"complete -o default -C shoal shoal\n",
		"fish": `function __complete_shoal
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    shoal
end
complete -f -c shoal -a "(__complete_shoal)"
`,
	}[c.Shell]
	_, err := fmt.Fprint(t.Out, text)
	return err
}

// manCommand is 'shoal man'.
type manCommand struct{}

// Help returns the command's help text.
func (*manCommand) Help() string {
	return `Example:

  shoal man > /usr/local/share/man/man1/shoal.1`
}

// Run prints the man page.
func (*manCommand) Run(t *terminal.Terminal, app *kong.Kong) error {
	_, err := fmt.Fprint(t.Out, mangokong.NewManPage(1, app.Model).Build(roff.NewDocument()))
	return err
}
