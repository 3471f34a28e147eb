//! An annotated function as lines of text.

use crate::annotated::{Annotated, AnnotatedCode, AnnotatedInstruction, Part};
use crate::figures::{count_or_blank, counted, grouped, percent, percent_or_blank, since};
use crate::function_info::{place, shortened};
use crate::line::{Line, Style};
use crate::sources::SourceLine;

/// Which parts of an annotated function are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// Instructions, each under the source line that it is of.
    #[default]
    Mixed,
    /// Instructions alone.
    Assembly,
    /// Source lines alone.
    Source,
}

/// Lines without samples between two that have some, which are still printed.
const LONGEST_GAP: usize = 12;
/// Those that are printed of a longer gap, at its beginning and its end.
const EDGE: usize = 3;
/// As many instructions of zeros are left out, or more.
const SHORTEST_ZEROS: usize = 4;
/// Most compilations in the list.
const MOST_CODES: usize = 40;

impl Annotated {
    /// As text. `start` is the time of the first sample.
    #[must_use]
    pub fn lines(&self, parts: Parts, start: u64) -> Vec<Line> {
        let mut lines = vec![Line::of(Style::Heading, self.function.full())];
        lines.push(Line::of(
            Style::Plain,
            format!(
                "{} of {} in it ({} %), {} in it or in what it called ({} %)",
                grouped(self.samples),
                counted(self.all_samples, "sample"),
                percent(self.samples, self.all_samples),
                grouped(self.inclusive),
                percent(self.inclusive, self.all_samples),
            ),
        ));
        self.add_codes(&mut lines, start);
        if parts == Parts::Source {
            self.add_source(&mut lines);
            return lines;
        }
        for code in self.codes.iter().chain(&self.inlined_into).filter(|code| code.is_shown) {
            self.add_code(&mut lines, code, parts);
        }
        // Without instructions, the lines are all there is.
        let has_instructions = self
            .codes
            .iter()
            .chain(&self.inlined_into)
            .any(|code| code.is_shown && code.missing.is_none());
        if !has_instructions && !self.lines.is_empty() && parts == Parts::Mixed {
            self.add_source(&mut lines);
        }
        lines
    }

    /// The list of compilations.
    fn add_codes(&self, lines: &mut Vec<Line>, start: u64) {
        let tier = |code: &AnnotatedCode| code.tier.chars().count();
        let width =
            self.codes.iter().chain(&self.inlined_into).map(tier).max().unwrap_or(0).clamp(4, 24);
        let heading = format!(
            "  {:>10}  {:<width$}  {:>11}  {:>7}  {:>9}  {:>11}  {:>11}  where",
            "generation", "tier", "samples", "%", "bytes", "loaded", "replaced"
        );
        for (title, codes) in [("", &self.codes), ("inlined into", &self.inlined_into)] {
            if codes.is_empty() {
                continue;
            }
            lines.push(Line::default());
            if !title.is_empty() {
                lines.push(Line::of(Style::Heading, title));
            }
            lines.push(Line::of(Style::Heading, heading.clone()));
            for code in codes.iter().take(MOST_CODES) {
                let time =
                    |time: Option<u64>| time.map(|time| since(time, start)).unwrap_or_default();
                let generation = match code.generation {
                    0 => String::new(),
                    number => number.to_string(),
                };
                let mut line = Line::of(
                    Style::Plain,
                    format!(
                        "{} {generation:>10}  {:<width$}  {:>11}  ",
                        if code.is_shown { ">" } else { " " },
                        code.tier,
                        grouped(code.samples)
                    ),
                );
                line.push(
                    Style::of_share(code.samples, self.samples_in_code),
                    format!("{:>7}", percent(code.samples, self.samples_in_code)),
                );
                line.push(
                    Style::Plain,
                    format!(
                        "  {:>9}  {:>11}  {:>11}  {}",
                        grouped(code.size),
                        time(code.loaded),
                        time(code.gone),
                        code.place(),
                    ),
                );
                if !title.is_empty() {
                    line.push(Style::Plain, format!("  {}", code.function.full()));
                }
                lines.push(line);
            }
            if let Some(others @ 1..) = codes.len().checked_sub(MOST_CODES) {
                let text = format!("  and {} with fewer samples", grouped(others as u64));
                lines.push(Line::of(Style::Faint, text));
            }
        }
    }

    /// The lines of the function.
    fn add_source(&self, lines: &mut Vec<Line>) {
        lines.push(Line::default());
        if self.lines.is_empty() {
            lines.push(Line::of(Style::Faint, "no source lines are known of this function"));
            return;
        }
        if self.is_source_newer {
            lines.push(Line::of(
                Style::Warm,
                "the file was changed after the recording: lines may differ",
            ));
        }
        if self.lines.iter().all(|line| line.text.is_none()) && !self.function.file.is_empty() {
            let file = shortened(&self.function.file);
            let text = match self.lines.iter().any(|line| line.line > 0) {
                true => format!("{file} is not there: lines without text"),
                false => format!("{file}: the line of its definition is not known"),
            };
            lines.push(Line::of(Style::Faint, text));
        }
        let heading = format!(
            " {:>7}  {:>11}  {:>7}  {:>11}  {:>6}",
            "self %", "self", "total %", "total", "line"
        );
        lines.push(Line::of(Style::Heading, heading));
        let has_samples = |line: &SourceLine| line.inclusive > 0;
        let mut rest = self.lines.as_slice();
        while let Some(first) = rest.first() {
            let cold = rest.iter().take_while(|line| !has_samples(line)).count();
            let (gap, behind) = rest.split_at_checked(cold).unwrap_or((rest, &[]));
            if cold > LONGEST_GAP {
                let edge = |lines: &[SourceLine]| {
                    lines.iter().map(|line| self.source_line(line)).collect::<Vec<_>>()
                };
                lines.extend(edge(gap.get(..EDGE).unwrap_or_default()));
                lines.push(Line::of(Style::Faint, format!("{:>50}", "...")));
                lines.extend(edge(gap.get(cold.saturating_sub(EDGE)..).unwrap_or_default()));
                rest = behind;
            } else if cold > 0 {
                lines.extend(gap.iter().map(|line| self.source_line(line)));
                rest = behind;
            } else {
                lines.push(self.source_line(first));
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }

    fn source_line(&self, line: &SourceLine) -> Line {
        let number = match line.line {
            0 => "?".to_owned(),
            number => number.to_string(),
        };
        let text = match line.line {
            0 => "code without a line",
            _ => line.text.as_deref().unwrap_or_default(),
        };
        Line::of(
            Style::of_share(line.samples, self.samples.max(1)),
            format!(" {:>7}", percent_or_blank(line.samples, self.samples)),
        )
        .with(
            Style::Plain,
            format!(
                "  {:>11}  {:>7}  {:>11}",
                count_or_blank(line.samples),
                percent_or_blank(line.inclusive, self.inclusive),
                count_or_blank(line.inclusive),
            ),
        )
        .with(Style::Faint, format!("  {number:>6} │ "))
        .with(Style::Source, text)
    }

    /// The instructions of a compilation.
    fn add_code(&self, lines: &mut Vec<Line>, code: &AnnotatedCode, parts: Parts) {
        lines.push(Line::default());
        let mut title = code.function.distinct_name();
        if code.generation > 0 {
            title.push_str(&format!(", generation {}", code.generation));
        }
        if !code.tier.is_empty() {
            title.push_str(&format!(", {}", code.tier));
        }
        title.push_str(&format!(", {} at {:#x}", counted(code.size, "byte"), code.address));
        lines.push(Line::of(Style::Heading, title));
        if let Some(missing) = code.missing {
            lines.push(Line::of(Style::Faint, format!("{missing}: addresses with samples only")));
        }
        lines.push(Line::of(
            Style::Heading,
            format!(" {:>7}  {:>9}  {:>6}", "%", "samples", "offset"),
        ));
        let mut before: &[Part] = &[];
        let mut end = None;
        let mut zeros = 0_usize;
        for (place, instruction) in code.instructions.iter().enumerate() {
            // Padding and headers are no instructions; objdump leaves them out too.
            zeros = if is_zero(instruction) { zeros.saturating_add(1) } else { 0 };
            let rest = code.instructions.get(place..).unwrap_or_default();
            let ahead = rest.iter().take(SHORTEST_ZEROS).take_while(|next| is_zero(next)).count();
            if zeros > 0 && zeros.saturating_add(ahead) > SHORTEST_ZEROS {
                end = Some(instruction.offset.saturating_add(2));
                if zeros == 1 {
                    lines.push(Line::of(Style::Faint, format!("{:>27}", "...")));
                }
                continue;
            }
            if end.is_some_and(|end| end != instruction.offset) && code.missing.is_none() {
                lines.push(Line::of(Style::Faint, format!("{:>27}", "...")));
                before = &[];
            }
            end = Some(instruction.end);
            if parts == Parts::Mixed {
                add_frames(lines, before, &instruction.frames);
                before = &instruction.frames;
            }
            lines.push(self.instruction_line(instruction));
        }
        if code.is_cut {
            lines.push(Line::of(Style::Faint, "  the code is too long: the rest is left out"));
        }
    }

    fn instruction_line(&self, instruction: &AnnotatedInstruction) -> Line {
        let AnnotatedInstruction { offset, samples, .. } = *instruction;
        let style = Style::of_share(samples, self.samples_in_code);
        let numbers = format!(
            " {:>7}  {:>9}",
            percent_or_blank(samples, self.samples_in_code),
            count_or_blank(samples)
        );
        let label = instruction.label.map(|label| format!("L{label}:")).unwrap_or_default();
        let mut line = Line::of(style, numbers)
            .with(Style::Faint, format!("  {offset:>6x}"))
            .with(Style::Target, format!("  {label:<5}"));
        // The operand or the comment that names a target.
        let named = instruction.target.as_ref().and_then(|target| {
            let name = if target.name.is_empty() { "L" } else { target.name.as_str() };
            let behind = instruction.text.find(' ').unwrap_or(0);
            let found = instruction.text.get(behind..)?.find(name)?;
            instruction.text.split_at_checked(behind.saturating_add(found))
        });
        match named {
            Some((text, target)) => {
                line.push(Style::Plain, text);
                line.push(Style::Target, target);
            }
            None => line.push(Style::Plain, instruction.text.clone()),
        }
        line
    }
}

impl AnnotatedCode {
    /// The process and the address, or the file.
    fn place(&self) -> String {
        match (self.pid, &self.process, &self.module) {
            (Some(pid), Some(process), _) => {
                format!("{:#x} in {pid} {}", self.address, shortened(process))
            }
            (_, _, Some(module)) => place(module, 0),
            _ => String::new(),
        }
    }
}

/// Whether an instruction is but zeros, which nothing jumps to.
fn is_zero(instruction: &AnnotatedInstruction) -> bool {
    instruction.bytes == "0000"
        && instruction.label.is_none()
        && instruction.inclusive == 0
        && instruction.samples == 0
}

/// Adds the source lines of an instruction, as far as they differ from those of the one before: the outermost first, inlined calls indented.
fn add_frames(lines: &mut Vec<Line>, before: &[Part], frames: &[Part]) {
    // Another column of the same line is no reason to repeat its text.
    let is_same =
        |a: &Part, b: &Part| (&a.function, &a.file, a.line) == (&b.function, &b.file, b.line);
    let both = || before.iter().rev().zip(frames.iter().rev());
    let same = both().take_while(|(a, b)| is_same(a, b)).count();
    if frames.is_empty() || (same == frames.len() && same == before.len()) {
        return;
    }
    // Back in an outer line, its text is repeated.
    let same = same.min(frames.len().saturating_sub(1));
    for (depth, part) in frames.iter().rev().enumerate().skip(same) {
        let indent = depth.saturating_mul(2).min(40);
        let mut line = Line::of(Style::Plain, " ".repeat(33_usize.saturating_add(indent)));
        let outer = before.iter().rev().nth(depth).filter(|outer| outer.function == part.function);
        if depth > 0 || outer.is_none() {
            let mark = if depth > 0 { "inlined " } else { "" };
            line.push(Style::Heading, format!("{mark}{}  ", shortened(&part.function)));
        }
        let place = match () {
            () if part.file.is_empty() || part.line == 0 => "(no line)".to_owned(),
            // The name of the file is in a line above.
            () if outer.is_some_and(|outer| outer.file == part.file) => {
                format!("line {}", part.line)
            }
            () => place(&part.file, part.line),
        };
        line.push(Style::Faint, place);
        if let Some(text) = &part.text {
            line.push(Style::Source, format!("  {}", text.trim_start()));
        }
        lines.push(line);
    }
}
