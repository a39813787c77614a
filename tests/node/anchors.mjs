// The ids that Docusaurus 3 gives to the headings of pages: stdin {name: text without front matter}, stdout
// {name: [[level, id], ...]} for the headings of each page, or {name: "why it does not parse"}.
//
// The same parser and plugins in the same order as @docusaurus/mdx-loader 3.10 for the format "mdx", and its rule: an
// explicit id is taken as it is and not counted, else github-slugger over the heading's text, one counter a file.
import {text} from 'node:stream/consumers';
import remarkComment from '@slorber/remark-comment';
import Slugger from 'github-slugger';
import {toString} from 'mdast-util-to-string';
import remarkDirective from 'remark-directive';
import remarkGfm from 'remark-gfm';
import remarkMdx from 'remark-mdx';
import remarkParse from 'remark-parse';
import {unified} from 'unified';
import {visit} from 'unist-util-visit';

const parser = unified().use(remarkParse).use(remarkMdx).use(remarkComment, {ast: false}).use(remarkDirective).use(remarkGfm);

// What the loader does to the text before it is parsed: `{#id}` is escaped, mdx-code-block fences are unwrapped.
function prepared(page) {
  return page
    .replaceAll(/(?:^|\n)(?<ticks>`{3,})mdx-code-block\n(?<body>[\s\S]*?)\n\k<ticks>(?:\n|$)/g, '\n$<body>\n')
    .replaceAll(/^(?<start>\s{0,3}#{1,6}\s.*?)(?<brace>\{#[^}\n]+\})\s*$/gm, '$<start>\\$<brace>');
}

function commentId(heading) {
  const last = heading.children.at(-1);
  const match = last?.type === 'mdxTextExpression' && /^\/\*([\s\S]*)\*\/$/.exec(last.value.trim());
  const first = match ? match[1].trim().split(' ')[0] : '';
  return first.startsWith('#') ? first.slice(1) || undefined : undefined;
}

function anchors(page) {
  const slugs = new Slugger();
  const found = [];
  const root = parser.parse(prepared(page));
  visit(root, 'heading', (heading) => {
    const shown = toString(heading.children.filter(({type}) => !['html', 'jsx'].includes(type)));
    const given = commentId(heading) ?? /\s*\{#(?<id>(?:.(?!\{#|\}))*.)\}$/.exec(shown)?.groups.id.trim();
    found.push([heading.depth, given ?? slugs.slug(shown)]);
  });
  return found;
}

const answers = {};
for (const [name, page] of Object.entries(JSON.parse(await text(process.stdin)))) {
  try {
    answers[name] = anchors(page);
  } catch (error) {
    answers[name] = String(error.message ?? error);
  }
}
process.stdout.write(JSON.stringify(answers));
