"""Public codes pass masking and the scan by their form; numbers of persons that hide among them stop."""

import pytest

from tests.support.judged_texts import damaged, masked

CODES = {
    "DOI": (
        "见doi:10.3760/cma.j.cn112338-20200115-00001。",
        "The trial (https://doi.org/10.1016/S0140-6736(20)30183-5) was stopped early.",
        "Available as 10.1056/NEJMoa2001017 and 10.1038/s41586-020-2012-7.",
        "DOI: 10.13703/j.0255-2930.20190412-k0003，发表于2019年。",
    ),
    "PMID": (
        "PMID: 32007145",
        "参考文献见PubMed 31986264，全文可下载。",
        "It was first described in 1997 (PubMed ID 9412345; PMID 32109013).",
        "Retrieved from https://pubmed.ncbi.nlm.nih.gov/32007143/ last week.",
    ),
    "PMCID": ("全文见PMC7095418。", "PMCID: PMC6812345, free full text.", "See PMC10234567 for the supplement."),
    "SNOMED": (
        "SNOMED CT 73211009 (diabetes mellitus)",
        "编码为SNOMED 44054006，2型糖尿病。",
        "Coded with SCTID: 195967001 for asthma.",
        "SNOMED CT: 1119302008 was added in 2021.",
    ),
    "Ensembl": (
        "基因BRCA1（ENSG00000012048）位于17号染色体。",
        "transcript ENST00000357654.9 and protein ENSP00000350283",
        "The mouse gene ENSMUSG00000017146 is its homologue.",
    ),
    "EudraCT": ("EudraCT 2016-002456-34", "EudraCT number: 2011-005475-16.", "试验登记于EudraCT（2018-001297-19）。"),
    "NCT": ("ClinicalTrials.gov注册号NCT04280705。", "NCT01234567 and NCT05128890 were pooled."),
    "NDC": ("NDC 0093-7146-56, 30 tablets", "(NDC 50580-449-10) acetaminophen", "NDC: 68180-0513-01 lisinopril"),
    "国药准字": (
        "批准文号：国药准字H20193210。",
        "国药准字Z20025001、国药准字S20110004均为处方药。",
        "【批准文号】国药准字J20171007",
    ),
    "国械注准": (
        "国械注准20193130001",
        "注册证编号：国械注准20223070415。",
        "国械注进20182220456，沪械注准20202140987。",
    ),
    "ICD": (
        "诊断编码E11.902、I10.x05、K21.001。",
        "ICD-10-CM S72.001A and ICD-9 250.00.",
        "ICD-11编码5A11，ICD-O编码8140/3。",
    ),
    "ISBN": (
        "ISBN 978-7-117-28341-0",
        "人民卫生出版社，ISBN：9787117283410。",
        "ISBN-10: 7-117-28341-6 (out of print)",
    ),
    "web addresses": (
        "https://www.nmpa.gov.cn/xxgk/20210315123456789.html",
        "https://clinicaltrials.gov/study/NCT04280705?rank=1",
        "见https://www.who.int/news/item/20191018-report/1234567890。",
    ),
    "incidences": (
        "年发病率为1023/1000000，死亡率为87/1000000。",
        "发病率由1990年的1234.5/10万升至2019年的1589.2/10万（1234567/10000000）。",
        "The incidence was 4821/10000000 person-years.",
    ),
    "references": (
        "Lancet 2020;396(10258):1204-1222.",
        "中华流行病学杂志,2021,42(5):1234-1240.",
        "[J]. 中国全科医学, 2022, 25(13): 1567-1573.",
        "N Engl J Med. 2001;345(19):1359-1367, pages 1023-1031 of the annex.",
    ),
}


@pytest.mark.parametrize("kind", CODES)
def test_a_public_code_passes_by_its_form(kind: str) -> None:
    """A user can rely on it that codes that anyone may look up are neither masked nor listed (some hold today too)."""
    assert damaged(*CODES[kind]) == {}


def test_forty_codes_pass_together_in_one_long_text() -> None:
    """A user can rely on it that a code passes among other codes as it does alone."""
    every = [text for texts in CODES.values() for text in texts]
    assert len(every) >= 40
    assert damaged("\n".join(every)) == {}


HIDDEN = {
    "mobile behind a PMID": ("PMID 31452104，随访联系13876542310。", "13876542310"),
    "mobile as a PMID": ("PMID 13876542310", "13876542310"),
    "mobile behind a DOI": ("doi:10.1056/NEJMoa2001017 13627184590", "13627184590"),
    "mobile as a trial": ("注册号NCT15926483071，已结束。", "15926483071"),
    "mobile among SNOMED codes": ("SNOMED CT 73211009, 18851730264, 44054006", "18851730264"),
    "mobile in groups": ("国药准字H20193210，厂家187 2345 9016", "187 2345 9016"),
    "mobile in a reference": ("Lancet 2020;396(10258):1204-1222, 17712369845.", "17712369845"),
    "landline": ("国械注准20193130001，电话010-61238457。", "010-61238457"),
    "landline without a word": ("ISBN 978-7-117-28341-0，0571-87153926", "0571-87153926"),
    "identity number": ("PMCID: PMC6812345，441900197506264032", "441900197506264032"),
    "identity number as an approval": ("国药准字110101199003077758", "110101199003077758"),
    "identity number with X": ("ENSG00000012048 51162119920418008X", "51162119920418008X"),
    "identity number as a book": ("ISBN 310229198711123457", "310229198711123457"),
    "bank card": ("EudraCT 2016-002456-34; 6222021234567890128", "6222021234567890128"),
    "bank card in groups": ("NDC 0093-7146-56, 6228 4800 1234 5678 903", "6228 4800 1234 5678 903"),
    "bank card as SNOMED": ("SNOMED 6217001234005678907", "6217001234005678907"),
    "credit card": ("见doi:10.1038/s41586-020-2012-7，4380881234567894", "4380881234567894"),
    "american telephone": ("PMID 32007145, call (312) 555-0147", "(312) 555-0147"),
    "british telephone": ("ICD-10 E11.9; mobile 07700 900417", "07700 900417"),
    "british health number": ("ENST00000357654, NHS no. 485 777 3457", "485 777 3457"),
    "american social security": ("NDC 50580-449-10, SSN 219-09-8764", "219-09-8764"),
    "spanish identity number": ("NCT01234567, DNI 48213967X", "48213967X"),
}


@pytest.mark.parametrize("sort", ["mobile", "landline", "identity", "bank credit", "american british spanish"])
def test_a_number_of_a_person_among_codes_stops(sort: str) -> None:
    """A user can rely on it that no code next to a person's number lets it through (most hold today too)."""
    cases = [case for what, case in HIDDEN.items() if what.startswith((*sort.split(),))]
    assert all(value in text for text, value in cases)
    found = masked(*(text for text, _ in cases))
    assert [each for each, (_, value) in zip(found, cases, strict=True) if not each.stops(value)] == []


def test_the_code_beside_a_persons_number_still_passes() -> None:
    """A user can rely on it that only the person's number is stopped, and the code beside it stays readable."""
    pairs = {
        "PMID 31452104，随访联系13876542310。": "31452104",
        "EudraCT 2016-002456-34，手机13627184590。": "2016-002456-34",
        "ENSG00000012048，手机18851730264。": "ENSG00000012048",
        "SNOMED CT 73211009, call (312) 555-0147": "73211009",
        "国械注准20193130001，电话010-61238457。": "国械注准20193130001",
        "NDC 0093-7146-56, SSN 219-09-8764": "0093-7146-56",
    }
    bent = [
        each for each, code in zip(masked(*pairs), pairs.values(), strict=True) if code not in each.after or each.left
    ]
    assert bent == []
