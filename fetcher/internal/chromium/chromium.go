// Package chromium owns the browser: a Chromium process, the pages that are loaded in it, and what
// they may use. It also owns the local proxies, which are the only way out of a page. It starts a
// new process when the one at hand has loaded enough pages, uses too much memory or hangs. It does
// not own the verdict on a page, robots.txt, politeness or attempts (transport and the worker do).
// Connections and the address guard are pkg/egress's.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/turns"
)

// Defaults of Config.
const (
	DefaultPages    = 4
	DefaultRecycle  = 100
	DefaultMemory   = 1536 << 20
	DefaultBytes    = 32 << 20
	DefaultRequests = 400
	DefaultBody     = 10 << 20
)

const (
	startTime   = 30 * time.Second // of a process
	closeTime   = 5 * time.Second  // of a page; then its process is killed
	memoryEvery = time.Second      // between two looks at the memory
	// from a page's load to when it is taken as it is, whatever it still fetches
	settleAfter  = 5 * time.Second
	moreWithin   = 4 * time.Second // for what a click or a scroll loads
	marginBefore = 2 * time.Second // the deadline: for reading what is there
)

// Config sets a Browser. Zero values mean the defaults.
type Config struct {
	Path      string // of the executable
	Client    *egress.Client
	UserAgent string // "": the browser's own
	Logger    *slog.Logger
	Reader    *reading.Guard // runs what reads the answers of sites; nil: one that keeps no page

	Pages    int   // loaded at a time
	Recycle  int   // pages of one process
	Memory   int64 // bytes of one process with its children; beyond it the largest is killed
	Bytes    int64 // sent and received by one page, in all its requests
	Requests int   // connections and requests of one page
	Body     int64 // bytes of the page's text
}

func (c *Config) setDefaults() {
	set(&c.Pages, DefaultPages)
	set(&c.Recycle, DefaultRecycle)
	set(&c.Memory, DefaultMemory)
	set(&c.Bytes, DefaultBytes)
	set(&c.Requests, DefaultRequests)
	set(&c.Body, DefaultBody)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Reader == nil {
		c.Reader = reading.New("fetcher", reading.Config{Logger: c.Logger})
	}
}

func set[T int | int64](setting *T, value T) {
	if *setting <= 0 {
		*setting = value
	}
}

// Browser loads pages. It is safe for concurrent use. Close ends it.
type Browser struct {
	config  Config
	places  *turns.Line
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup // processes, and pages

	mu      sync.Mutex
	current *process // nil: none is there
}

// process is one Chromium.
type process struct {
	ctx   context.Context // a chromedp context; once ready is closed
	kill  context.CancelFunc
	sink  *gate // what the process itself asks for, beside its pages, ends here
	ready chan struct{}
	err   error // why it did not start; once ready is closed

	mu     sync.Mutex
	loaded int  // pages begun
	open   int  // pages under way
	retire bool // it takes no further page
}

// Open makes a browser of an executable. It starts that once, to see within half a minute that it
// works; pages start processes of their own. Its errors are ctx's, or say why there is no browser.
func Open(ctx context.Context, config Config) (*Browser, error) {
	config.setDefaults()
	path, err := exec.LookPath(config.Path)
	if err != nil {
		return nil, fmt.Errorf("chromium: %w", err)
	}
	config.Path = path
	b := &Browser{config: config, places: turns.NewLine(config.Pages, ComeAgain)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	p, err := b.acquireProcess(ctx)
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("chromium: %s: %w", path, err)
	}
	p.end()
	b.give(p)
	return b, nil
}

// Close kills the process; pages under way fail. It waits for their end.
func (b *Browser) Close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
}

// acquireProcess answers a process for one page. The caller gives it back.
func (b *Browser) acquireProcess(ctx context.Context) (*process, error) {
	b.mu.Lock()
	if b.ctx.Err() != nil {
		b.mu.Unlock()
		return nil, fault.Wrap(fault.Unavailable, b.ctx.Err(), "The browser is closed.")
	}
	if b.current == nil || !b.current.take(b.config.Recycle) {
		b.current = b.startLocked()
		b.current.take(b.config.Recycle)
	}
	p := b.current
	b.running.Add(1)
	b.mu.Unlock()
	select {
	case <-p.ready:
	case <-ctx.Done():
		b.give(p)
		return nil, ctx.Err()
	}
	if p.err != nil {
		b.give(p)
		return nil, fault.Wrap(fault.Unavailable, p.err, "The browser did not start.")
	}
	return p, nil
}

// give takes a process back; the last page of one that retires ends it.
func (b *Browser) give(p *process) {
	defer b.running.Done()
	p.leave()
}

// take begins a page, of so many at most that the process begins. One that takes no further page
// ends, and it is false.
func (p *process) take(most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retire || p.loaded >= most {
		p.endLocked()
		return false
	}
	p.loaded++
	p.open++
	return true
}

// leave ends a page. A process that did not start takes no further one.
func (p *process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	if p.retire {
		p.endLocked()
	}
}

// end lets a process take no further page, and kills it once none is under way.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
}

func (p *process) endLocked() {
	p.retire = true
	if p.open == 0 {
		p.kill()
	}
}

// destroy ends a process with all its pages.
func (b *Browser) destroy(p *process, why string) {
	b.config.Logger.Warn("chromium: killed", "why", why)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire = true
	p.kill()
}

// startLocked makes a process.
func (b *Browser) startLocked() *process {
	ctx, cancel := context.WithCancel(b.ctx)
	p := &process{kill: cancel, ready: make(chan struct{})}
	b.running.Go(func() {
		defer cancel()
		b.run(ctx, p)
	})
	return p
}

// run is a process's life.
func (b *Browser) run(ctx context.Context, p *process) {
	dir, err := os.MkdirTemp("", "shoal-chromium")
	if err == nil {
		defer removeDir(dir)
		p.sink, err = openGate(ctx, &b.config, "", nil, 0, 0) // nothing may pass
	}
	if err != nil {
		p.started(nil, err)
		return
	}
	defer p.sink.close()
	var pid int
	allocator, stop := chromedp.NewExecAllocator(ctx, b.flags(dir, p.sink.address())...)
	defer stop()
	browserCtx, stopBrowser := chromedp.NewContext(allocator,
		chromedp.WithErrorf(func(format string, args ...any) {
			b.config.Logger.Debug("chromium: " + fmt.Sprintf(format, args...))
		}))
	defer stopBrowser()
	starting := time.AfterFunc(startTime, stop)
	_, err = chromedp.CallBrowser(browserCtx, browser.SetDownloadBehavior,
		browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny})
	starting.Stop()
	if c := chromedp.FromContext(browserCtx); err == nil && c.Browser != nil &&
		c.Browser.Process() != nil {
		pid = c.Browser.Process().Pid
	}
	p.started(browserCtx, err)
	if err != nil {
		b.config.Logger.Error("chromium: did not start", "err", err)
		return
	}
	b.watch(ctx, p, pid)
	killGroup(pid)
}

// started tells those who wait for the process how its start ended. If it failed, it takes no page.
func (p *process) started(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.err, p.retire = ctx, err, p.retire || err != nil
	close(p.ready)
}

// watch returns when the process is to end, or has.
func (b *Browser) watch(ctx context.Context, p *process, pid int) {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-chromedp.FromContext(p.ctx).Browser.LostConnection:
			b.destroy(p, "it ended by itself")
			return
		case <-ticker.C:
		}
		switch used, largest := memoryOfGroup(pid); {
		case used <= b.config.Memory:
		case largest != pid: // a page's: the others go on
			b.config.Logger.Warn("chromium: a page's process was killed", "megabytes", used>>20)
			killProcess(largest)
		default:
			b.destroy(p, fmt.Sprintf("it uses %d MB of memory", used>>20))
			return
		}
	}
}

// flags start a browser that reaches nothing by itself. Every request goes to a proxy of ours, and
// names are not resolved. What goes round a proxy is off: QUIC, WebRTC, prefetching, discovery in
// the local network, the vendor's own services.
func (b *Browser) flags(dir, sink string) []chromedp.ExecAllocatorOption {
	flags := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	flags = append(flags, chromedp.ExecPath(b.config.Path), chromedp.UserDataDir(dir),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) { inGroup(cmd, dir) }),
		chromedp.ProxyServer(sink), chromedp.Flag("proxy-bypass-list", "<-loopback>"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-quic", true), chromedp.Flag("dns-prefetch-disable", true),
		chromedp.Flag("no-pings", true),
		chromedp.Flag("disable-popup-blocking", false), // chromedp sets it
		chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("disable-field-trial-config", true), chromedp.Flag("disable-features",
			"Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AsyncDns,NetworkTimeServiceQuerying,"+
				"HttpsUpgrades,HttpsFirstBalancedMode,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,AutofillServerCommunication,WebRtcHideLocalIpsWithMdns"),
		chromedp.Flag("blink-settings", "imagesEnabled=false"), chromedp.Flag("mute-audio", true),
		chromedp.Flag("js-flags", "--max-old-space-size=512"),
		chromedp.Flag("renderer-process-limit", strconv.Itoa(2*b.config.Pages)),
		chromedp.DisableGPU, chromedp.Flag("disable-breakpad", true),
		chromedp.Flag("disable-crash-reporter", true),
		chromedp.WindowSize(1366, 900))
	if b.config.UserAgent != "" {
		flags = append(flags, chromedp.UserAgent(b.config.UserAgent))
	}
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // Chromium refuses to start as root with it
	}
	return flags
}

// removeDir removes a profile; files that a dying process still writes are tried again.
func removeDir(dir string) {
	for range 5 {
		if err := os.RemoveAll(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
	}
}
