//! A bar chart as SVG: one group for each thing, one bar for each program, readable on light and dark pages.

use std::fmt::Write as _;

/// Bars of one thing.
pub struct Group {
    /// The thing.
    pub name: String,
    /// Figures, in the order of the programs.
    pub bars: Vec<f64>,
}

const COLOURS: [&str; 3] = ["#9aa5b1", "#d08770", "#2f7ed8"];
const BAR: f64 = 11.0;
const LEFT: f64 = 90.0;
const WIDE: f64 = 480.0;

/// The picture. `unit` is said behind each figure.
pub fn svg(title: &str, programs: &[&str], groups: &[Group], unit: &str) -> String {
    let most = groups.iter().flat_map(|group| &group.bars).copied().fold(1.0_f64, f64::max);
    let tall = BAR * programs.len() as f64 + 10.0;
    let height = 60.0 + tall * groups.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {height:.0}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#777\">\n<title>{title}</title>\n"
    );
    for (at, (program, colour)) in programs.iter().zip(COLOURS).enumerate() {
        let x = LEFT + 150.0 * at as f64;
        let _ = writeln!(text, "<rect x=\"{x:.0}\" y=\"14\" width=\"11\" height=\"11\" fill=\"{colour}\"/>");
        let _ = writeln!(text, "<text x=\"{:.0}\" y=\"24\">{program}</text>", x + 16.0);
    }
    for (row, group) in groups.iter().enumerate() {
        let top = 42.0 + tall * row as f64;
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            top + tall / 2.0,
            group.name
        );
        for (at, (figure, colour)) in group.bars.iter().zip(COLOURS).enumerate() {
            let (y, width) = (top + BAR * at as f64, (figure / most * WIDE).max(1.0));
            let _ = writeln!(
                text,
                "<rect x=\"{LEFT:.0}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.0}\" fill=\"{colour}\"/>",
                BAR - 1.5
            );
            let _ =
                writeln!(text, "<text x=\"{:.1}\" y=\"{:.1}\">{figure:.0} {unit}</text>", LEFT + width + 5.0, y + 8.5);
        }
    }
    text.push_str("</svg>\n");
    text
}
