/** The style of every page. Colours repeat the text. Both colour schemes have a contrast of at least 4.5 to 1. */
export const style = `
:root{--back:#fff;--card:#f6f7f9;--text:#1b1f24;--faint:#57606a;--line:#d0d7de;--good:#116329;--warning:#7d4e00;--bad:#a40e26;--quiet:#57606a;--accent:#0550ae}
@media (prefers-color-scheme:dark){:root{--back:#0d1117;--card:#161b22;--text:#e6edf3;--faint:#9da7b3;--line:#3d444d;--good:#56d364;--warning:#e3b341;--bad:#ff8b84;--quiet:#9da7b3;--accent:#79c0ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main,footer{max-width:72rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;margin:.5rem 0}
h2{font-size:1.2rem;margin:2rem 0 .5rem}
p,dd,td,th,li,summary{overflow-wrap:anywhere}
code{font:.875em/1.5 ui-monospace,monospace;background:var(--card);padding:.1em .3em;border-radius:.25em}
footer,caption,.faint{color:var(--faint);font-size:.875rem}
.lead{font-size:1.1rem}
table{width:100%;border-collapse:collapse}
caption{text-align:left;padding:.25rem 0}
th,td{text-align:left;vertical-align:top;padding:.4rem .75rem .4rem 0;border-top:1px solid var(--line);font-weight:normal}
thead th{color:var(--faint);font-size:.8rem;border-top:0}
th.name{min-width:22rem}
td.short{white-space:nowrap}
td.bar{width:24%;min-width:9rem}
td[data-title=Expires],td[data-title=Left]{white-space:nowrap}
svg{display:block;width:100%;height:1.5rem;overflow:visible}
svg text{fill:var(--faint);font-size:.75rem}
.axis{stroke:var(--line)}
.now{stroke:var(--text);stroke-width:2}
.badge{display:inline-block;border:1px solid;border-radius:1em;padding:0 .6em;font-size:.875rem;white-space:nowrap}
.good{color:var(--good);fill:var(--good)}
.warning{color:var(--warning);fill:var(--warning)}
.bad{color:var(--bad);fill:var(--bad)}
.quiet{color:var(--quiet);fill:var(--quiet)}
ul.plain,ol.phases{list-style:none;margin:0;padding:0}
ul.plain>li{background:var(--card);border-left:.25rem solid currentColor;border-radius:.25rem;margin:.5rem 0;padding:.5rem .75rem}
ul.plain>li>*{color:var(--text);margin:.25rem 0}
ul.plain>li>.badge{color:inherit}
ul.plain>li>ul{padding-left:1.25rem;font-size:.875rem}
ol.phases{border-left:2px solid var(--line);margin-left:.75rem}
ol.phases>li{position:relative;padding:.25rem 0 .75rem 1.5rem}
ol.phases>li::before{content:attr(data-number);position:absolute;left:-.9rem;top:.2rem;width:1.75rem;height:1.75rem;border-radius:50%;background:var(--back);border:2px solid currentColor;text-align:center;font-size:.8rem;line-height:1.5rem}
ol.phases>li>*{color:var(--text);margin:.25rem 0}
ol.phases .badge.good{color:var(--good)}
ol.phases .badge.warning{color:var(--warning)}
ol.phases .badge.quiet{color:var(--quiet)}
ol.phases .badge.bad{color:var(--bad)}
ol.phases h3{font-size:1rem;margin:0}
details>summary{cursor:pointer;color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem .75rem;margin:.25rem 0;font-size:.875rem}
dt{color:var(--faint)}
dd{margin:0}
@media (max-width:46rem){
thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
table,tbody,tr,td,th.name{display:block;min-width:0}
tr{border-top:1px solid var(--line);padding:.5rem 0}
th,td{border:0;padding:.1rem 0}
td.bar{width:100%;min-width:0}
td[data-title]:not(.bar):not(:empty)::before{content:attr(data-title) ": ";color:var(--faint)}
th.name{font-weight:600}
dl{grid-template-columns:1fr}
}
@media print{details:not([open])>*{display:block}}
`
